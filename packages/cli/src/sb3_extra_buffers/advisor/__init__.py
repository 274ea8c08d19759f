"""Advice on how to store observations, measured on the observations themselves beside Stable-Baselines3's buffers."""

from sb3_extra_buffers.advisor.advice import Advice, Verdict, advise, check_preference
from sb3_extra_buffers.advisor.measurement import Dropped, Failed, Measured, Screened, specs
from sb3_extra_buffers.advisor.plot import draw, picture
from sb3_extra_buffers.advisor.stream import Stream, make, play, read

__all__ = [
    "Advice",
    "Dropped",
    "Failed",
    "Measured",
    "Screened",
    "Stream",
    "Verdict",
    "advise",
    "check_preference",
    "draw",
    "make",
    "picture",
    "play",
    "read",
    "specs",
]

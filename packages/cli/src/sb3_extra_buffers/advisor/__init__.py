"""Which way to store is the right one for these observations? Tried on the observations themselves.

It needs Stable-Baselines3, beside whose buffers everything is measured.
"""

from importlib.util import find_spec

from sb3_extra_buffers.errors import MissingExtraError

if find_spec("stable_baselines3") is None:
    raise MissingExtraError("The advisor", "stable-baselines3", "sb3")

from sb3_extra_buffers.advisor.advice import Advice, advise
from sb3_extra_buffers.advisor.measuring import Measured
from sb3_extra_buffers.advisor.playing import make, play
from sb3_extra_buffers.advisor.plot import draw, picture
from sb3_extra_buffers.advisor.reading import read
from sb3_extra_buffers.advisor.screening import Failed, Screened, specs
from sb3_extra_buffers.advisor.selecting import Dropped
from sb3_extra_buffers.advisor.stream import Stream
from sb3_extra_buffers.advisor.verdict import Verdict, check_preference

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

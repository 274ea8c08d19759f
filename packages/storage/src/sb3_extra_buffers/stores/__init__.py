"""Rows of bytes by cell number: how observations are kept. No torch, no Stable-Baselines3."""

from sb3_extra_buffers.stores.building import Claimed, Demand, Place, build_stores
from sb3_extra_buffers.stores.cells import CellStore
from sb3_extra_buffers.stores.faces import NextFace, ObservationFace
from sb3_extra_buffers.stores.frame_store import FrameStore
from sb3_extra_buffers.stores.framing import MIN_FRAMES_NBYTES, MIN_FRAMES_ROWS, FrameDemand
from sb3_extra_buffers.stores.lazy import LazyStore
from sb3_extra_buffers.stores.origins import LocatedStore, Origins
from sb3_extra_buffers.stores.planes import Frames, Plane
from sb3_extra_buffers.stores.preferences import PREFERENCES, SPEED, Preference, preference
from sb3_extra_buffers.stores.protocol import Store
from sb3_extra_buffers.stores.raw import RawStore
from sb3_extra_buffers.stores.request import AUTO, parse_request
from sb3_extra_buffers.stores.rewritten import RewrittenStore
from sb3_extra_buffers.stores.transitions import TransitionStore
from sb3_extra_buffers.stores.undecided import UndecidedFrames

__all__ = [
    "AUTO",
    "MIN_FRAMES_NBYTES",
    "MIN_FRAMES_ROWS",
    "PREFERENCES",
    "SPEED",
    "CellStore",
    "Claimed",
    "Demand",
    "FrameDemand",
    "FrameStore",
    "Frames",
    "LazyStore",
    "LocatedStore",
    "NextFace",
    "ObservationFace",
    "Origins",
    "Place",
    "Plane",
    "Preference",
    "RawStore",
    "RewrittenStore",
    "Store",
    "TransitionStore",
    "UndecidedFrames",
    "build_stores",
    "parse_request",
    "preference",
]

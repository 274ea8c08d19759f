"""Rows of bytes by cell number: how observations are kept. No torch, no Stable-Baselines3."""

from sb3_extra_buffers.stores.building import Demand, Place, build_stores
from sb3_extra_buffers.stores.cells import CellStore
from sb3_extra_buffers.stores.faces import NextFace, ObservationFace
from sb3_extra_buffers.stores.lazy import LazyStore
from sb3_extra_buffers.stores.protocol import Store
from sb3_extra_buffers.stores.raw import RawStore
from sb3_extra_buffers.stores.request import AUTO, parse_request
from sb3_extra_buffers.stores.rewritten import RewrittenStore
from sb3_extra_buffers.stores.transitions import TransitionStore

__all__ = [
    "AUTO",
    "CellStore",
    "Demand",
    "LazyStore",
    "NextFace",
    "ObservationFace",
    "Place",
    "RawStore",
    "RewrittenStore",
    "Store",
    "TransitionStore",
    "build_stores",
    "parse_request",
]

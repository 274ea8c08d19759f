"""How observations are stored: one contract for raw, cell and frame storage. No torch, no Stable-Baselines3."""

from sb3_extra_buffers.stores.auto import (
    AUTO,
    BALANCED,
    MEMORY,
    PREFERENCES,
    SPEED,
    Preference,
    parse_request,
    preference,
    strongest_codec,
)
from sb3_extra_buffers.stores.cells import CellStore
from sb3_extra_buffers.stores.deferred import DeferredStore, resolve
from sb3_extra_buffers.stores.factory import (
    DEFAULT_HEAP,
    MIN_FRAMES_NBYTES,
    MIN_FRAMES_STEPS,
    Claimed,
    FrameRequest,
    Place,
    StoreRequest,
    build_stores,
)
from sb3_extra_buffers.stores.frames import FrameStore
from sb3_extra_buffers.stores.pairs import PairStore, RewrittenStore, SharedStore
from sb3_extra_buffers.stores.protocol import (
    BoundedStore,
    EvictingStore,
    LocatedStore,
    ObservationStore,
    Origins,
    OverlappingStore,
    join_origins,
)
from sb3_extra_buffers.stores.raw import RawStore

__all__ = [
    "AUTO",
    "BALANCED",
    "DEFAULT_HEAP",
    "MEMORY",
    "MIN_FRAMES_NBYTES",
    "MIN_FRAMES_STEPS",
    "PREFERENCES",
    "SPEED",
    "BoundedStore",
    "CellStore",
    "Claimed",
    "DeferredStore",
    "EvictingStore",
    "FrameRequest",
    "FrameStore",
    "LocatedStore",
    "ObservationStore",
    "Origins",
    "OverlappingStore",
    "PairStore",
    "Place",
    "Preference",
    "RawStore",
    "RewrittenStore",
    "SharedStore",
    "StoreRequest",
    "build_stores",
    "join_origins",
    "parse_request",
    "preference",
    "resolve",
    "strongest_codec",
]

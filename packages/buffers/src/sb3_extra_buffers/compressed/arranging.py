"""Which stores serve what a buffer stores per step."""

from __future__ import annotations

from enum import Enum
from typing import cast

from sb3_extra_buffers.compressed.prefetch import Worker
from sb3_extra_buffers.compressed.settled import Settled
from sb3_extra_buffers.stores import (
    Frames,
    NextFace,
    ObservationFace,
    Plane,
    RewrittenStore,
    Store,
    TransitionStore,
)
from sb3_extra_buffers.stores.judging import MIN_NBYTES


class PerStep(Enum):
    """What a buffer stores per step."""

    #: One observation.
    SINGLE = "single"
    #: One observation, written twice: ``optimize_memory_usage`` of Stable-Baselines3.
    REWRITTEN = "rewritten"
    #: An observation and the next one, which are shared where they are the same.
    TRANSITIONS = "transitions"


def arranged(
    stores: list[Store] | None, per_step: PerStep, n_envs: int, is_strict: bool
) -> tuple[Store | None, Store | None]:
    """The store of the observations and that of the next observations. An observation without elements has none."""
    if stores is None:
        return None, None
    if per_step is PerStep.SINGLE:
        return stores[0], None
    if per_step is PerStep.REWRITTEN:
        return stores[0] if isinstance(stores[0], Plane) else RewrittenStore(stores[0]), None
    own, others = stores
    if isinstance(own, Plane):
        return own, others  # frames are shared anyway
    # Comparing costs more than it saves; but where a step may be refused, it is one write instead of two.
    if own.row_nbytes < MIN_NBYTES and not is_strict:
        return own, others
    transitions = TransitionStore(own, others, n_envs)
    return ObservationFace(transitions), NextFace(transitions)


def settled(store: Store | None, worker: Worker | None) -> Store | None:
    """A store that is used only while the worker is idle."""
    if store is None or worker is None:
        return store
    if not isinstance(store, Plane):
        return cast("Store", Settled(store, worker))
    store.frames = cast("Frames", Settled(store.frames, worker))  # a plane shall be known as one
    return store

"""Prefetch: read the next batch in a thread while the model trains on the current one."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import get_ident
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.compressed.locking import BufferLock
from sb3_extra_buffers.heaps.state import within
from sb3_extra_buffers.stores import ObservationStore, resolve

Result = TypeVar("Result")

#: Differs from the name of the codecs' threads: threads of that name do not share their work with others.
_NAME = "prefetch-sb3-extra-buffers"
#: One batch is being decoded, one is ready, and the one before that is in a variable of the caller.
BATCHES_AT_ONCE = 3


class Worker(BufferLock):
    """One thread that runs one job at a time. The first job starts it, and it ends with its owner.

    Stores have no locks. So other threads wait until the worker is idle before they use a store: :meth:`wait`. The
    worker waits for no other thread, so there is no deadlock. A write always happens after the reads that were
    requested before it, whichever thread is faster.
    """

    rank = 1

    def __init__(self) -> None:
        #: Number of writes. A batch that was read before the last write may be stale.
        self.writes = 0
        self._pool: ThreadPoolExecutor | None = None
        self._job: Future[Any] | None = None
        self._thread = 0
        super().__init__()

    def submit(self, work: Callable[..., Result], *args: Any) -> Future[Result]:
        """Start a job after the previous one. ``work`` must not refer to the owner, which the job would keep alive."""
        with self.lock:
            self.wait()
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, _NAME)
            self._job = job = self._pool.submit(self._run, work, args)
        return job

    def finish(self, job: Future[Result]) -> Result:
        """Wait for a job of :meth:`submit` and return its result, or raise its exception."""
        self.wait()
        return job.result()

    def wait(self) -> None:
        """Wait until no job is running. Returns at once if the job itself calls it."""
        job = self._job
        if job is not None and get_ident() != self._thread:
            job.exception()  # waits, and leaves it to finish() to raise
            self._job = None  # its result belongs to the caller of finish()

    # Threads do not survive a fork. A child would wait forever for a batch that was being read, and its stores would
    # have inconsistent caches.

    def before_fork(self) -> None:
        self.wait()

    def after_fork(self) -> None:
        self._pool, self._thread = None, 0  # the next job starts another thread

    def _run(self, work: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        self._thread = get_ident()
        return work(*args)


class GuardedStore:
    """An observation store that is used only while the worker is idle. Only buffers that prefetch have it."""

    _WRITES = frozenset({"write", "clear", "restore"})
    #: What a deferred store does itself after the choice, too: its state says what was chosen.
    _OF_BUILT = frozenset({"state", "restore"})

    def __init__(self, store: ObservationStore, worker: Worker) -> None:
        self._built = store
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # there may be no attributes yet, as in copy.copy()
        worker = self._worker
        worker.wait()
        if name in self._WRITES:
            worker.writes += 1
        return getattr(self._built if name in self._OF_BUILT else resolve(self._built), name)


# Replay: transitions are drawn one batch ahead.

#: Observations and next observations, by key.
Pairs = dict[str, list[NDArray[Any]]]
_ARRAYS = ("cells", "actions", "rewards", "dones")


@dataclass(eq=False)
class Batch:
    """Transitions that were drawn, with everything that is not compressed."""

    cells: NDArray[np.int64]
    actions: NDArray[Any]
    rewards: NDArray[Any]
    dones: NDArray[Any]
    #: Observations, the job that reads them, or ``None`` if no job was started.
    observations: Pairs | Future[Pairs] | None = None

    def state(self) -> State:
        """The batch, with the observations: cells may have been overwritten since they were drawn."""
        found = self.observations
        if isinstance(found, Future):
            found = None if found.exception() else found.result()  # after a failure, they are read again
        state = State({"is_read": found is not None}, {name: getattr(self, name) for name in _ARRAYS})
        for number, pair in enumerate((found or {}).values()):
            for plane, part in enumerate(pair):
                # Buffers on a device have tensors.
                state.arrays[f"{number}.{plane}"] = (
                    part if isinstance(part, np.ndarray) else part.detach().cpu().numpy()
                )
        return state

    @classmethod
    def from_state(cls, buffer: Any, state: State) -> Batch:
        """The inverse of :meth:`state`, for a batch of this buffer."""
        cells = state.array("cells", np.int64, None)
        within("cells", cells, 0, buffer.buffer_size * buffer.n_envs - 1)
        count = len(cells)
        actions = state.array("actions", buffer.actions.dtype, count, buffer.action_dim)
        rewards, dones = (state.array(name, buffer.rewards.dtype, count, 1) for name in ("rewards", "dones"))
        batch = cls(cells, actions, rewards, dones)
        if state.fact("is_read", bool):
            pairs: Pairs = {}
            for number, (key, array) in enumerate(buffer._storage.observations.items()):
                shape = count, *array.shape[2:]
                pairs[key] = [state.array(f"{number}.{plane}", array.dtype, *shape) for plane in (0, 1)]
            batch.observations = pairs
        return batch


# Rollouts: the indices of the next batch are known, its observations are read ahead.


@dataclass
class Prefetched:
    """Stands in for a :class:`CompressedArray` when Stable-Baselines3 asks it for a batch that was read ahead."""

    _array: Any
    _indices: NDArray[Any]
    _rows: NDArray[Any]

    def __getitem__(self, indices: Any) -> Any:
        return self._rows if indices is self._indices else self._array[indices]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)


def read_rows(observations: Any, indices: NDArray[Any]) -> Any:
    """Read rows of an array, or of arrays by key."""
    if isinstance(observations, dict):
        return {key: array[indices] for key, array in observations.items()}
    return observations[indices]


def prefetched(observations: Any, indices: NDArray[Any], rows: Any) -> Any:
    """Stand-ins for an array, or for arrays by key, whose rows :func:`read_rows` has read."""
    if isinstance(observations, dict):
        return {key: Prefetched(array, indices, rows[key]) for key, array in observations.items()}
    return Prefetched(observations, indices, rows)

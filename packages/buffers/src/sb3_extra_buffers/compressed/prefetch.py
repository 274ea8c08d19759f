"""Reading the next batch in a thread while the model trains on the one before."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import get_ident
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.heaps.state import within
from sb3_extra_buffers.stores import ObservationStore, resolve

Result = TypeVar("Result")

#: Not the name of the codecs' threads: those are recognised by it, and do not share their work with others.
_NAME = "prefetch-sb3-extra-buffers"
#: One batch is being decoded, one is ready, and the one before that is in a variable of the caller.
BATCHES_AT_ONCE = 3


def check_prefetch(owner: str, prefetch: Any, obstacle: str) -> None:
    """Refuse a value that is not a bool, and ``True`` where the next batch cannot be read ahead.

    :param owner: the buffer's class
    :param prefetch: the argument
    :param obstacle: why it cannot be done; empty if it can
    """
    if not isinstance(prefetch, bool):
        raise ParameterError(owner, "prefetch", prefetch, "it must be True or False")
    if prefetch and obstacle:
        raise ParameterError(owner, "prefetch", prefetch, f"it must be False: {obstacle}", "Leave prefetch out.")


class Worker:
    """One thread that runs one job at a time. The first job starts it, and it ends with its owner.

    Stores have no locks. So other threads wait until the worker is idle before they use a store: :meth:`wait`. The
    worker waits for no other thread, so there is no deadlock. A write always happens after the reads that were
    requested before it, whichever thread is faster.
    """

    def __init__(self) -> None:
        #: Number of writes. A batch that was read before the last write may be stale.
        self.writes = 0
        self._pool: ThreadPoolExecutor | None = None
        self._job: Future[Any] | None = None
        self._thread = 0
        _workers.add(self)

    def submit(self, work: Callable[..., Result], *args: Any) -> Future[Result]:
        """Start a job after the one before it. :meth:`finish` returns its result.

        :param work: must not refer to the owner, which could not be released until the job is done
        :param args: arguments of the work
        """
        self.wait()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, _NAME)
        job = self._pool.submit(self._run, work, args)
        self._job = job
        return job

    def finish(self, job: Future[Result]) -> Result:
        """Wait for a job and return its result, or raise its exception.

        :param job: from :meth:`submit`
        """
        self.wait()
        return job.result()

    def wait(self) -> None:
        """Wait until no job is running. Returns at once if the job itself calls it."""
        job = self._job
        if job is not None and get_ident() != self._thread:
            job.exception()  # waits, and leaves it to finish() to raise
            self._job = None  # its result belongs to the caller of finish()

    def leave_thread(self) -> None:
        """Forget the thread, in a forked process that does not have it. The next job starts another one."""
        self._pool, self._thread = None, 0

    def _run(self, work: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        self._thread = get_ident()
        return work(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        return Worker, ()  # a thread cannot be pickled


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _wait_for_all() -> None:
    for worker in list(_workers):
        worker.wait()


def _leave_threads() -> None:
    for worker in list(_workers):
        worker.leave_thread()


# Threads do not survive a fork: a child would wait for ever for a batch that was being read, and read from a store in
# whose caches another thread was writing.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_all, after_in_child=_leave_threads)


class GuardedStore:
    """An observation store that is used only while the worker is idle. Buffers that do not prefetch have none.

    :param store: the store
    :param worker: the thread that also reads it
    """

    _WRITES = frozenset({"write", "clear", "restore"})
    #: What a deferred store does itself after the choice, too: its state says what was chosen.
    _OF_BUILT = frozenset({"state", "restore"})

    def __init__(self, store: ObservationStore, worker: Worker) -> None:
        self._built = store
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # copying asks for special methods before there are attributes
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
    """Transitions that were drawn, with what is not compressed. Observations are read later, or ahead.

    :param observations: observations, the job that reads them, or ``None`` if no job was started
    """

    cells: NDArray[np.int64]
    actions: NDArray[Any]
    rewards: NDArray[Any]
    dones: NDArray[Any]
    observations: Pairs | Future[Pairs] | None = None

    def result(self) -> Pairs | None:
        """The observations, once they are read; ``None`` if there are none. On failure, the caller reads again."""
        found = self.observations
        if isinstance(found, Future):
            return None if found.exception() is not None else found.result()
        return found

    def state(self) -> State:
        """The batch, with the observations: cells may have been overwritten since they were drawn."""
        found = self.result()
        state = State({"is_read": found is not None}, {name: getattr(self, name) for name in _ARRAYS})
        for number, pair in enumerate((found or {}).values()):
            for plane, part in enumerate(pair):
                state.arrays[f"{number}.{plane}"] = _on_host(part)
        return state

    @classmethod
    def from_state(cls, buffer: Any, state: State) -> Batch:
        """The inverse of :meth:`state`.

        :param buffer: the buffer that returns the batch
        :param state: the state
        """
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


def _on_host(part: Any) -> Any:
    return part if isinstance(part, np.ndarray) else part.detach().cpu().numpy()


# Rollouts: the indices of the next batch are known, its observations are read ahead.


class Prefetched:
    """Stands in for an array when Stable-Baselines3 asks it for a batch that was read ahead.

    :param array: a :class:`CompressedArray`
    :param indices: the rows of the batch
    :param rows: their content
    """

    def __init__(self, array: Any, indices: NDArray[Any], rows: NDArray[Any]) -> None:
        self._array = array
        self._indices = indices
        self._rows = rows

    def __getitem__(self, indices: Any) -> Any:
        return self._rows if indices is self._indices else self._array[indices]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)


class ReadAhead:
    """A batch of a rollout that is being read.

    :param worker: the thread that reads it
    :param observations: an array, or arrays by key
    :param indices: the rows of the batch
    """

    def __init__(self, worker: Worker, observations: Any, indices: NDArray[Any]) -> None:
        self._worker = worker
        self._source = observations
        self._writes = worker.writes
        self._job = worker.submit(read_rows, observations, indices)

    def take(self, observations: Any) -> Any:
        """The batch; ``None`` if the arrays have been replaced or written to since.

        :param observations: the arrays that the batch must come from
        """
        if observations is not self._source or self._worker.writes != self._writes:
            return None
        return self._worker.finish(self._job)


def read_rows(observations: Any, indices: NDArray[Any]) -> Any:
    """Read rows of an array, or of arrays by key.

    :param observations: an array, or arrays by key
    :param indices: the rows
    """
    if isinstance(observations, dict):
        return {key: array[indices] for key, array in observations.items()}
    return observations[indices]


def prefetched(observations: Any, indices: NDArray[Any], rows: Any) -> Any:
    """Stand-ins for an array, or for arrays by key, whose batch was read.

    :param observations: an array, or arrays by key
    :param indices: the rows of the batch
    :param rows: from :func:`read_rows`
    """
    if isinstance(observations, dict):
        return {key: Prefetched(array, indices, rows[key]) for key, array in observations.items()}
    return Prefetched(observations, indices, rows)

"""How next observations are stored: shared with the observations that follow, beside them, or in their place."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.heaps.state import State, within
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.deferred import DeferredStore, resolve
from sb3_extra_buffers.stores.pending import PendingRows
from sb3_extra_buffers.stores.protocol import NO_CELL, BoundedStore, LocatedStore, ObservationStore, Origins
from sb3_extra_buffers.stores.sparse import SparseStore


class _Composed:
    """What the stores of this module take over from the store of the observations."""

    def __init__(self, observations: ObservationStore) -> None:
        self.cells = observations.cells
        self.row_nbytes = observations.row_nbytes
        #: The store of the observations as it was built. Its state says what was chosen.
        self._built = observations
        #: The store of the observations, once it is chosen without the detour.
        self.observations = observations

    @property
    def active(self) -> ObservationStore:
        return cast("ObservationStore", self)

    @property
    def explanation(self) -> str:
        """Why observations are stored as they are, if the choice was automatic."""
        return getattr(self._built, "explanation", "")

    def describe(self) -> str:
        return self.observations.describe()

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        # A next observation is written after its observation, and so evicted after it.
        return self.observations.holds(cells)


class SharedStore(_Composed):
    """Stores a next observation once: as the observation of the following transition.

    ``next_obs[t]`` is ``obs[t + 1]`` unless an episode ended in between. This is not assumed but compared, when
    ``obs[t + 1]`` is written. Until then the newest next observations are pending, uncompressed. Those that turn out to
    be different (above all the true last observation of an episode) get a payload of their own. So sharing is exact
    for every input, also with timeouts, and each observation is compressed once.

    :param observations: the store of the observations
    :param others: a store of as many cells, for the next observations that are found nowhere else
    :param step: number of cells between an observation and the one that follows it: the number of environments
    :param is_bounded: whether the heap has a limit, so that next observations must be checked before anything changes
    """

    def __init__(
        self, observations: ObservationStore, others: ObservationStore, step: int, *, is_bounded: bool = False
    ) -> None:
        super().__init__(observations)
        self.apart = SparseStore(others)
        self._step = step
        self._is_bounded = is_bounded
        self._shared = np.zeros(observations.cells, np.bool_)
        self._pending = PendingRows(observations.row_nbytes)
        #: The cells whose observations decide about the pending ones, as integers: compared at every step.
        self._awaited: list[int] = []
        #: Next observations that were just found to fit.
        self._fitting: bytes | None = None

    @property
    def overhead(self) -> int:
        return self.observations.overhead + self.apart.overhead + self._shared.nbytes

    def refuse_too_large(self, rows: Bytes, /) -> bool:
        """Refuse next observations that could never be stored, before anything changes.

        What could never get a payload of its own would be pending for ever, with everything behind it.
        """
        fitting, self._fitting = self._fitting, None
        if fitting is not None and fitting == rows.tobytes():
            return False
        is_encoded = self._is_bounded and self.apart.refuse_too_large(rows)
        if is_encoded:
            self._fitting = rows.tobytes()
        return is_encoded

    def write(self, cells: Indices, obs: Bytes | None, next_obs: Bytes | None = None, /) -> None:
        if next_obs is not None and self._is_bounded:
            self.refuse_too_large(next_obs)
            self._fitting = None
        if obs is not None:
            self._write_observations(cells, obs)
        if next_obs is not None:
            self._write_next(cells, next_obs)

    def _write_observations(self, cells: Indices, rows: Bytes) -> None:
        """Store observations, and decide about the pending next observations."""
        pending = self._pending
        if not pending or cells.tolist() != self._awaited:
            self._flush()
            self._save_for_predecessors(cells)
            self.observations.write(cells, rows)
        elif pending.equals(rows):
            self.observations.write(cells, rows)
            self._shared[pending.cells] = True
        else:
            same = (pending.rows == rows).all(axis=1)
            # First, so that a failure leaves the observations alone. If their write fails, this one was only early.
            self.apart.write(pending.cells[~same], pending.rows[~same])
            self.observations.write(cells, rows)
            self._shared[pending.cells] = same
        pending.drop()
        self.observations = resolve(self.observations)

    def _write_next(self, cells: Indices, rows: Bytes) -> None:
        """Keep next observations pending until the observations that follow them are written."""
        self._flush()
        if len(cells) == 1:  # one environment: numbers take less time than arrays
            cell = cells.item()
            self._shared[cell] = False
            awaited = [(cell + self._step) % self.cells]
        else:
            self._shared[cells] = False
            awaited = ((cells + self._step) % self.cells).tolist()
        self.apart.free(cells)
        self._awaited = awaited
        self._pending.put(cells, rows)

    def read(self, cells: Indices, out: Bytes | None, next_out: Bytes | None = None, /) -> None:
        if out is not None:
            self.observations.read(cells, out)
        if next_out is not None:
            self._read_next(cells, next_out)

    def _read_next(self, cells: Indices, out: Bytes) -> None:
        shared = self._shared[cells]
        if shared.all():
            self.observations.read(self._after(cells), out)
            return
        if shared.any():
            # Rows that are found elsewhere are filled in below; until then any readable cell will do.
            after = self._after(cells)
            self.observations.read(np.where(shared, after, after[shared.argmax()]), out)
        elsewhere = np.flatnonzero(~shared)
        rows = np.zeros((len(elsewhere), self.row_nbytes), np.uint8)
        self.apart.read(cells[elsewhere], rows)
        self._pending.read(cells[elsewhere], rows)
        out[elsewhere] = rows

    def origins(self, cells: Indices, is_next: bool = False, /) -> Origins:
        observations = cast("LocatedStore", self.observations)
        if not is_next:
            return observations.origins(cells)
        shared = self._shared[cells]
        found = self.apart.origins(cells)
        own = observations.origins(self._after(cells[shared]))
        found.cells[shared] = own.cells
        places = np.flatnonzero(shared)
        found.in_memory += [(places[rows], content) for rows, content in own.in_memory]
        pending = np.isin(cells, self._pending.cells) & ~shared
        if pending.any():
            rows = np.empty((int(pending.sum()), self.row_nbytes), np.uint8)
            self._pending.read(cells[pending], rows)
            found.cells[pending] = NO_CELL
            found.in_memory.append((np.flatnonzero(pending), rows))
        return Origins(own.codec or found.codec, found.cells, found.in_memory)

    def stored_nbytes(self) -> int:
        return self.observations.stored_nbytes() + self.apart.stored_nbytes() + self._pending.nbytes

    def clear(self) -> None:
        self.observations.clear()
        self.apart.clear()
        self._shared.fill(False)
        self._pending.drop()

    def state(self) -> State:
        found = State({}, {"shared": self._shared, "awaited": np.array(self._awaited, np.int64)})
        found.put("observations", self._built.state()).put("apart", self.apart.state())
        return found.put("waiting", self._pending.state())

    def restore(self, state: State, /) -> None:
        self._built.restore(state.part("observations"))
        self.observations = resolve(self._built)
        self.apart.restore(state.part("apart"))
        state.copy_to(shared=self._shared)
        awaited = state.array("awaited", np.int64, None)
        within("awaited", awaited, 0, self.cells - 1)
        self._awaited = awaited.tolist()
        self._pending.restore(state.part("waiting"), self.cells)

    def _after(self, cells: Indices) -> Indices:
        return (cells + self._step) % self.cells

    def _flush(self) -> None:
        """Give pending next observations payloads of their own: the expected observations did not come."""
        if self._pending:
            self.apart.write(self._pending.cells, self._pending.rows)
            self._pending.drop()

    def _save_for_predecessors(self, cells: Indices) -> None:
        """Before observations are overwritten out of order: keep them for the transitions that lead to them."""
        before = (cells - self._step) % self.cells
        before = before[self._shared[before]]
        # An evicted observation cannot be kept, and need not be: the transitions that lead to it were evicted before.
        evicted = ~self.observations.holds(self._after(before))
        self._shared[before[evicted]] = False
        before = before[~evicted]
        if len(before):
            rows = np.empty((len(before), self.row_nbytes), np.uint8)
            self.observations.read(self._after(before), rows)
            self.apart.write(before, rows)
            self._shared[before] = False


class PairStore(_Composed):
    """Observations in one store and next observations in another, for rows so small that comparing does not pay.

    :param observations: the store of the observations
    :param next_observations: the store of the next observations
    """

    def __init__(self, observations: ObservationStore, next_observations: ObservationStore) -> None:
        super().__init__(observations)
        self._built_next = self._next = next_observations
        self._is_resolved = False

    @property
    def overhead(self) -> int:
        return self.observations.overhead + self._next.overhead

    def refuse_too_large(self, rows: Bytes, /) -> bool:
        """Refuse next observations that could never be stored, before anything changes."""
        store = self._next.active
        return isinstance(store, BoundedStore) and store.refuse_too_large(rows)

    def write(self, cells: Indices, obs: Bytes | None, next_obs: Bytes | None = None, /) -> None:
        if obs is not None:
            self.observations.write(cells, obs)
        if next_obs is not None:
            self._next.write(cells, next_obs)
        if not self._is_resolved:
            self.observations, self._next = resolve(self.observations), resolve(self._next)
            self._is_resolved = not any(isinstance(one, DeferredStore) for one in (self.observations, self._next))

    def read(self, cells: Indices, out: Bytes | None, next_out: Bytes | None = None, /) -> None:
        if out is not None:
            self.observations.read(cells, out)
        if next_out is not None:
            self._next.read(cells, next_out)

    def origins(self, cells: Indices, is_next: bool = False, /) -> Origins:
        return cast("LocatedStore", self._next if is_next else self.observations).origins(cells)

    def stored_nbytes(self) -> int:
        return self.observations.stored_nbytes() + self._next.stored_nbytes()

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        return self.observations.holds(cells) & self._next.holds(cells)

    def clear(self) -> None:
        self.observations.clear()
        self._next.clear()

    def state(self) -> State:
        return self._built.state().put("next", self._built_next.state())

    def restore(self, state: State, /) -> None:
        self._built.restore(state)
        self._built_next.restore(state.part("next"))
        self.observations, self._next = resolve(self._built), resolve(self._built_next)


class RewrittenStore(_Composed):
    """Skips rows that the last write has stored already.

    With ``optimize_memory_usage``, Stable-Baselines3 writes each observation twice to one cell: as a next observation,
    and as the observation of the following step. Comparing is far cheaper than compressing again.

    :param observations: the store that is written to
    """

    def __init__(self, observations: ObservationStore) -> None:
        super().__init__(observations)
        self._last = PendingRows(observations.row_nbytes)

    @property
    def overhead(self) -> int:
        return self.observations.overhead + self._last.nbytes

    def read(self, cells: Indices, out: Bytes | None, next_out: Bytes | None = None, /) -> None:
        self.observations.read(cells, out, next_out)

    def origins(self, cells: Indices, is_next: bool = False, /) -> Origins:
        return cast("LocatedStore", self.observations).origins(cells, is_next)

    def write(self, cells: Indices, obs: Bytes | None, next_obs: Bytes | None = None, /) -> None:
        assert obs is not None
        assert next_obs is None
        last = self._last
        written, rows = cells, obs
        if np.array_equal(cells, last.cells):
            if last.equals(obs):
                return
            new = (obs != last.rows).any(axis=1)
            written, rows = cells[new], obs[new]
        last.drop()  # a write that fails may have stored a part of its rows
        self.observations.write(written, rows)
        last.put(cells, obs)
        self.observations = resolve(self.observations)

    def stored_nbytes(self) -> int:
        return self.observations.stored_nbytes()

    def clear(self) -> None:
        self.observations.clear()
        self._last.drop()

    def state(self) -> State:
        return State().put("store", self._built.state()).put("last", self._last.state())

    def restore(self, state: State, /) -> None:
        self._built.restore(state.part("store"))
        self.observations = resolve(self._built)
        self._last.restore(state.part("last"), self.cells)

"""``TransitionStore``: observations and next observations, where the second are mostly the first, one step later."""

from __future__ import annotations

from typing import cast

import numpy as np

from sb3_extra_buffers.heaps.state import State, within
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.origins import NO_CELL, LocatedStore, Origins
from sb3_extra_buffers.stores.protocol import Store
from sb3_extra_buffers.stores.slots import SlotStore
from sb3_extra_buffers.stores.waiting import WaitingRows


class TransitionStore:
    """Stores what a transition leads to once: as the observation of the transition that follows.

    ``next_obs[t]`` is ``obs[t + 1]`` unless an episode ended in between. Whether it is, is not assumed but compared,
    when ``obs[t + 1]`` is written: until then the newest next observations wait, uncompressed. Those that turn out to
    be something else (the true last observation of an episode, above all) get a payload of their own. So sharing is
    exact for every input, also together with timeouts, and each observation is compressed once.

    :param observations: the store of the observations
    :param others: a store of as many cells, for the next observations that are found nowhere else
    :param step: how many cells lie between an observation and the one that follows it: the number of environments
    """

    #: Next observations that were encoded to see that they fit, until they are written. Comparing is far quicker.
    _fitting: bytes | None = None

    def __init__(self, observations: Store, others: Store, step: int) -> None:
        self.observations = observations
        self.apart = SlotStore(others)
        self._step = step
        self._shared = np.zeros(observations.cells, np.bool_)
        self._waiting = WaitingRows(observations.row_nbytes)
        #: The cells whose observations decide about those that wait, as plain integers: compared at every step.
        self._awaited: list[int] = []

    @property
    def overhead(self) -> int:
        """Bytes of memory for keeping track."""
        return self.apart.overhead + self._shared.nbytes

    def write_observations(self, cells: Indices, rows: Bytes) -> None:
        """Store observations, and settle what becomes of the next observations that wait for them."""
        waiting = self._waiting
        if not waiting or cells.tolist() != self._awaited:
            self._flush()
            self._save_for_predecessors(cells)
            self.observations.write(cells, rows)
        elif waiting.equals(rows):
            self.observations.write(cells, rows)
            self._shared[waiting.cells] = True
        else:
            same = (waiting.rows == rows).all(axis=1)
            # First, so that a failure leaves the observations alone. If that of those fails, this was only early.
            self.apart.write(waiting.cells[~same], waiting.rows[~same])
            self.observations.write(cells, rows)
            self._shared[waiting.cells] = same
        waiting.drop()

    def refuse_next(self, rows: Bytes) -> None:
        """Refuse next observations that could never be stored, while nothing has changed."""
        self._fitting = rows.tobytes() if self.apart.refuse_too_large(rows) else None

    def write_next(self, cells: Indices, rows: Bytes) -> None:
        """Let next observations wait for the observations that follow them."""
        # What could never get a payload of its own would wait for ever, and everything that comes behind it.
        if self._fitting is None or self._fitting != rows.tobytes():
            self.apart.refuse_too_large(rows)
        self._fitting = None
        self._flush()
        self._shared[cells] = False
        self.apart.free(cells)
        self._waiting.put(cells, rows)
        count = self.observations.cells
        self._awaited = [(cell + self._step) % count for cell in cells.tolist()]

    def read_next(self, cells: Indices, out: Bytes) -> None:
        """Read next observations from wherever they are."""
        shared = self._shared[cells]
        if shared.all():
            self.observations.read(self._after(cells), out)
            return
        if shared.any():
            # Rows that are found elsewhere are filled in below; until then any readable cell will do.
            after = self._after(cells)
            self.observations.read(np.where(shared, after, after[shared.argmax()]), out)
        elsewhere = np.flatnonzero(~shared)
        rows = np.zeros((len(elsewhere), self.observations.row_nbytes), np.uint8)
        self.apart.read(cells[elsewhere], rows)
        self._waiting.read(cells[elsewhere], rows)
        out[elsewhere] = rows

    def origins_of_next(self, cells: Indices) -> Origins:
        """Where next observations are."""
        shared = self._shared[cells]
        found = self.apart.origins(cells)
        own = cast("LocatedStore", self.observations).origins(self._after(cells[shared]))
        found.cells[shared] = own.cells
        places = np.flatnonzero(shared)
        found.at_hand += [(places[rows], content) for rows, content in own.at_hand]
        waiting = np.isin(cells, self._waiting.cells) & ~shared
        if waiting.any():
            rows = np.empty((int(waiting.sum()), self.observations.row_nbytes), np.uint8)
            self._waiting.read(cells[waiting], rows)
            found.cells[waiting] = NO_CELL
            found.at_hand.append((np.flatnonzero(waiting), rows))
        return Origins(own.codec or found.codec, found.cells, found.at_hand)

    def stored_nbytes_of_next(self) -> int:
        """How many bytes the next observations take that are not shared, or not yet."""
        return self.apart.stored_nbytes() + self._waiting.nbytes

    def clear(self) -> None:
        """Forget everything."""
        self.observations.clear()
        self.apart.clear()
        self._shared.fill(False)
        self._waiting.drop()

    def state(self) -> State:
        """What another one on an equal heap needs in order to become this one."""
        found = State({}, {"shared": self._shared, "awaited": np.array(self._awaited, np.int64)})
        found.put("observations", self.observations.state()).put("apart", self.apart.state())
        return found.put("waiting", self._waiting.state())

    def restore(self, state: State) -> None:
        """Become what another one was. The heap has been restored."""
        self.observations.restore(state.part("observations"))
        self.apart.restore(state.part("apart"))
        state.copy_to(shared=self._shared)
        awaited = state.array("awaited", np.int64, None)
        within("awaited", awaited, 0, self.observations.cells - 1)
        self._awaited = awaited.tolist()
        self._waiting.restore(state.part("waiting"), self.observations.cells)

    def _after(self, cells: Indices) -> Indices:
        return (cells + self._step) % self.observations.cells

    def _flush(self) -> None:
        """Give what waits payloads of its own: what it waited for did not come."""
        if self._waiting:
            self.apart.write(self._waiting.cells, self._waiting.rows)
            self._waiting.drop()

    def _save_for_predecessors(self, cells: Indices) -> None:
        """Before observations are overwritten out of order: keep them for the transitions that lead to them."""
        before = (cells - self._step) % self.observations.cells
        before = before[self._shared[before]]
        # What a heap has dropped cannot be kept, and need not be: the transitions that lead there went before it.
        dropped = ~self.observations.holds(self._after(before))
        self._shared[before[dropped]] = False
        before = before[~dropped]
        if len(before):
            rows = np.empty((len(before), self.observations.row_nbytes), np.uint8)
            self.observations.read(self._after(before), rows)
            self.apart.write(before, rows)
            self._shared[before] = False

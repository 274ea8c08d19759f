"""``RawStore``: uncompressed rows in contiguous memory, for data that a codec does not make smaller."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CellSpec
from sb3_extra_buffers.codecs.none import uncompressed
from sb3_extra_buffers.heaps.block import allocate
from sb3_extra_buffers.heaps.memory import MemoryHeap
from sb3_extra_buffers.heaps.state import State, StateError
from sb3_extra_buffers.memory import Bytes, Indices

#: What reports call cells without a codec: the name of the codec that changes nothing.
UNCOMPRESSED = uncompressed(CellSpec(np.uint8, 1)).spec.name


class RawStore:
    """Observations as they are: no payload, no index, and a batch is read by one call of numpy.

    Memory is claimed at the first write and occupied as it is written to. It goes back to the system when the store is
    cleared.

    :param cells: number of cells
    :param row_nbytes: size of one cell
    :param reason: why there is no codec, if the choice was automatic
    """

    def __init__(self, cells: int, row_nbytes: int, *, reason: str = "") -> None:
        self.cells = cells
        self.row_nbytes = row_nbytes
        self._reason = reason
        self._written = np.zeros(cells, np.bool_)
        self._rows: Bytes | None = None

    @property
    def overhead(self) -> int:
        return self._written.nbytes

    @property
    def active(self) -> RawStore:
        return self

    def describe(self) -> str:
        return f"{UNCOMPRESSED} ({self._reason})" if self._reason else UNCOMPRESSED

    def read(self, cells: Indices, out: Bytes | None, next_out: Bytes | None = None, /) -> None:
        assert out is not None
        assert next_out is None
        if self._rows is None:
            out[:] = 0
        else:
            # With mode="raise" numpy would go through a buffer; the cells have been checked.
            self._rows.take(cells, axis=0, out=out, mode="clip")

    def write(self, cells: Indices, obs: Bytes | None, next_obs: Bytes | None = None, /) -> None:
        assert obs is not None
        assert next_obs is None
        if self._rows is None:
            self._rows = self._allocate()
        if len(cells) == 1:  # one environment: an index that is a number takes half the time
            cell = cells.item()
            self._rows[cell] = obs
            self._written[cell] = True
        else:
            self._rows[cells] = obs
            self._written[cells] = True

    def stored_nbytes(self) -> int:
        return int(np.count_nonzero(self._written)) * self.row_nbytes

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        return np.ones(len(cells), np.bool_)

    def clear(self) -> None:
        self._rows = None
        self._written.fill(False)

    def state(self) -> State:
        written = np.flatnonzero(self._written)
        end = int(written[-1]) + 1 if len(written) else 0
        rows = np.empty((0, self.row_nbytes), np.uint8) if self._rows is None else self._rows[:end]
        return State({}, {"written": self._written, "rows": rows})

    def restore(self, state: State, /) -> None:
        rows = state.array("rows", np.uint8, None, self.row_nbytes)
        state.copy_to(written=self._written)
        if len(rows) > self.cells or self._written[len(rows) :].any():
            raise StateError(f"there are {len(rows)} rows for {self.cells} cells")
        if len(rows):
            self._rows = self._allocate()
            state.begin_of(rows=self._rows)

    def _allocate(self) -> Bytes:
        return allocate(MemoryHeap.label, self.cells * self.row_nbytes).reshape(self.cells, self.row_nbytes)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._rows is not None:
            state["_rows"] = self._rows[self._written]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        rows = state.pop("_rows")
        self.__dict__.update(state, _rows=None)
        if rows is not None:
            self.write(np.flatnonzero(self._written), rows)

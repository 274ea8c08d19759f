"""``rle``: runs of equal elements, vectorised in numpy. ``docs/rle-format.md`` has the byte format.

The payload of a cell with ``n`` runs is the *end* of each run as the smallest unsigned integer that holds the element
count, followed by the value of each run. Ends cost the same bytes as lengths, and a decoder that has them needs no
running sum. Values are compared bit by bit: every NaN and both zeros survive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs.byte_codec import ByteCodec
from sb3_extra_buffers.codecs.plugin import CodecPlugin
from sb3_extra_buffers.codecs.protocol import CellSpec, CodecSpec
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.registry import hookimpl


def end_dtype(count: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds ``count``, little-endian: the type of run ends."""
    return next(dtype for dtype in map(np.dtype, ("<u1", "<u2", "<u4", "<u8")) if count <= np.iinfo(dtype).max)


def word_dtype(itemsize: int) -> np.dtype[Any]:
    """The unsigned word in which elements are compared. Wider elements (long double) take several words each."""
    return np.dtype(f"u{itemsize}" if itemsize in (1, 2, 4, 8) else f"u{np.gcd(itemsize, 8)}")


class RleCodec(ByteCodec):
    """Run-length encoding. A cell whose runs would not pay is stored raw, so no payload exceeds the cell."""

    def __init__(self, spec: CodecSpec, cell: CellSpec) -> None:
        super().__init__(spec, cell)
        self._end = end_dtype(cell.count)
        self._word = word_dtype(cell.dtype.itemsize)
        self._words_per_element = cell.dtype.itemsize // self._word.itemsize
        self._run_nbytes = self._end.itemsize + cell.dtype.itemsize

    def compress(self, cell: memoryview) -> Any:
        elements = self._elements(np.frombuffer(cell, np.uint8))
        changed = elements[1:] != elements[:-1]
        if changed.ndim == 2:
            changed = changed.any(axis=1)
        last = np.flatnonzero(changed)  # the last element of each run but the final one
        runs = len(last) + 1
        if runs * self._run_nbytes >= self.cell.nbytes:
            return cell
        payload = np.empty(runs * self._run_nbytes, np.uint8)
        ends = payload[: runs * self._end.itemsize].view(self._end)
        ends[:-1] = last + 1
        ends[-1] = self.cell.count
        values = self._elements(payload[runs * self._end.itemsize :])
        values[:-1] = elements[last]
        values[-1] = elements[-1]
        return payload

    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        runs, rest = divmod(len(payload), self._run_nbytes)
        if rest or not runs:
            raise self._damaged(payload, f"its length is not a multiple of {self._run_nbytes}, the size of a run")
        data = np.frombuffer(payload, np.uint8)
        ends = data[: runs * self._end.itemsize].view(self._end).astype(np.int64)
        lengths = np.diff(ends, prepend=0)
        if lengths.min() < 1 or ends[-1] != self.cell.count:
            raise self._damaged(payload, f"its run ends do not rise to the element count {self.cell.count}")
        values = self._elements(data[runs * self._end.itemsize :])
        self._elements(np.frombuffer(out, np.uint8))[...] = np.repeat(values, lengths, axis=0)

    def _elements(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        words = data.view(self._word)
        return words if self._words_per_element == 1 else words.reshape(-1, self._words_per_element)

    def _damaged(self, payload: memoryview, problem: str) -> PayloadError:
        return PayloadError(self.spec.name, len(payload), problem)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(protocol=1, factory=RleCodec, summary="Run-length encoding in numpy")

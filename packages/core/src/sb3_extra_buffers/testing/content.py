"""What the kit stores and where: deterministic contents for cells, and memory that notices wrong writes."""

from __future__ import annotations

import ctypes
import gc
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CellSpec
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.testing.rule import expect

_BAND = 64
#: Every bool, integer and float dtype, and one in foreign byte order.
DTYPES: tuple[np.dtype[Any], ...] = tuple(
    np.dtype(name) for name in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", ">f4")
)
#: Around the places where a one-byte or two-byte count runs over.
COUNTS = (1, 2, 255, 256, 257, 65535, 65536, 65537)


def _elements(cell: CellSpec, values: NDArray[Any]) -> Bytes:
    """One row of bytes per element, cut or repeated to the cell's count."""
    return np.resize(values, (cell.count, cell.dtype.itemsize)).reshape(-1)


def _runs(cell: CellSpec, random: np.random.Generator) -> Bytes:
    """Runs from 1 to a few hundred elements: what images of games look like."""
    lengths = np.ceil(random.pareto(1.0, 4096)).clip(1, 400).astype(np.int64)
    palette = random.integers(0, 256, (16, cell.dtype.itemsize), np.uint8)
    return _elements(cell, np.repeat(palette[random.integers(0, 16, 4096)], lengths, axis=0))


def _short_runs(cell: CellSpec, random: np.random.Generator) -> Bytes:
    """Runs of 1, 2 and 3 elements: as bad for run lengths as noise, but with repeats for dictionaries to find."""
    values = random.integers(0, 256, (3000, cell.dtype.itemsize), np.uint8)
    return _elements(cell, np.repeat(values, random.integers(1, 4, 3000), axis=0))


CONTENTS: dict[str, Callable[[CellSpec, np.random.Generator], Bytes]] = {
    "constant": lambda cell, random: _elements(cell, random.integers(0, 256, (1, cell.dtype.itemsize), np.uint8)),
    "runs": _runs,
    "alternation": lambda cell, random: _elements(cell, random.integers(0, 256, (2, cell.dtype.itemsize), np.uint8)),
    "short runs": _short_runs,
    # Every element differs from the one before it.
    "ramp": lambda cell, _: np.resize(np.arange(cell.nbytes, dtype=np.uint64).view(np.uint8), cell.nbytes),
    "noise": lambda cell, random: random.integers(0, 256, cell.nbytes, np.uint8),
}


def content(name: str, cell: CellSpec, seed: int = 0) -> Bytes:
    """The bytes of one cell with the named kind of content; the same for the same seed.

    Bool cells hold arbitrary bytes too: a codec must not care.
    """
    return CONTENTS[name](cell, np.random.default_rng([seed, len(name), cell.count]))


def special_floats(dtype: np.dtype[Any]) -> NDArray[Any]:
    """The values of a float dtype that arithmetic or comparison would lose."""
    info = np.finfo(dtype)
    plain = np.array([0.0, -0.0, np.inf, -np.inf, info.tiny, -info.tiny, info.max, 1.0], dtype)
    # Quiet and signalling NaNs with payloads, and a subnormal, by their bits.
    word = np.dtype(f"u{dtype.itemsize}")
    exponent = np.array([np.inf], dtype).view(word)[0]
    bits = np.array([exponent | word.type(1), exponent | word.type(0x155), ~word.type(0), word.type(1)], word)
    return np.concatenate([plain, bits.view(dtype)])


class GuardedRows:
    """Rows of writable bytes between two bands that must stay as they are."""

    def __init__(self, rows: int, nbytes: int, offset: int = 0, fill: int = 0xA5) -> None:
        size, begin = rows * nbytes, _BAND + offset
        self._memory = np.resize(np.arange(251, dtype=np.uint8), begin + size + _BAND)
        self._memory[begin : begin + size] = fill
        self._inside = slice(begin, begin + size)
        self._before = self._memory.copy()
        self.rows: Bytes = self._memory[self._inside].reshape(rows, nbytes)

    @property
    def row(self) -> Bytes:
        """The first row."""
        row: Bytes = self.rows[0]
        return row

    def expect_bands_intact(self, what: str) -> None:
        """Fail if anything beside the rows was written to."""
        changed = self._memory != self._before
        changed[self._inside] = False
        expect(not changed.any(), f"{what} wrote {int(changed.sum())} bytes outside its output")

    def expect_untouched(self, what: str) -> None:
        """Fail if anything at all was written to."""
        self.expect_bands_intact(what)
        expect((self._memory == self._before).all(), f"{what} wrote to its output although it was refused")


def at_odd_offset(data: Bytes) -> Bytes:
    """A read-only copy at an address that no word is aligned to."""
    room = np.empty(len(data) + 8, np.uint8)
    shift = 1 + (-room.ctypes.data % 8)
    copy = room[shift : shift + len(data)]
    copy[:] = data
    copy.flags.writeable = False
    return copy


def expect_steady_memory(what: str, work: Callable[[], None], nbytes: int, rounds: int) -> None:
    """Fail if the process keeps a good part of what passes through it.

    The median of several measurements: other parts of the process may free or take memory during one of them.
    """
    grown = []
    tracemalloc.start()
    try:
        for _ in range(rounds // 4):
            work()  # caches fill up
        before = _held_nbytes()
        for _ in range(5):
            for _ in range(rounds):
                work()
            after = _held_nbytes()
            grown.append(max(now - then for now, then in zip(after, before)))
            before = after
    finally:
        tracemalloc.stop()
    kept = sorted(grown)[2]
    expect(kept < rounds * nbytes // 2, f"{what}, {rounds} times {nbytes} bytes, left {kept} bytes more in memory")


def _held_nbytes() -> tuple[int, int]:
    gc.collect()
    return tracemalloc.get_traced_memory()[0], _resident_nbytes()


def _resident_nbytes() -> int:
    # Libraries allocate memory that is not traced. It is measured where the C library can return what is free.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is None:
        return 0
    trim(0)
    # With what is swapped out: the system may do that at any time, also to pages that were never given back.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return sum(int(status[name].split()[0]) * 1024 for name in ("RssAnon", "VmSwap"))

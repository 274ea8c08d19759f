"""Heaps that lie. Each is a built-in one but for one thing, and names the rules that this must break, all of them."""

import os

import numpy as np

from sb3_extra_buffers.heaps import Evictions, HeapPlugin
from sb3_extra_buffers.heaps.memory import MemoryHeap
from sb3_extra_buffers.heaps.ring import RingHeap


class HonestMemory(MemoryHeap):
    """Keeps every rule."""

    breaks: frozenset[str] = frozenset()


class HonestRing(RingHeap):
    """Keeps every rule."""

    breaks: frozenset[str] = frozenset()


class ShowsReservations(HonestMemory):
    """Empties cells as soon as they are reserved."""

    breaks = frozenset({"reservation"})

    def reserve(self, cells, worst_case_bytes, /):
        room = super().reserve(cells, worst_case_bytes)
        self._release(self._forget(cells))
        return room


class ReservesTooMuch(HonestMemory):
    """Hands out and believes in more room than was asked for."""

    breaks = frozenset({"reservation", "wrong-lengths", "wrong-cells"})

    def reserve(self, cells, worst_case_bytes, /):
        super().reserve(cells, worst_case_bytes + 16)
        return self._staging[: worst_case_bytes + 16]


class IgnoresOverwrites(HonestMemory):
    """Keeps the first payload of every cell."""

    breaks = frozenset({"read-back", "random-workload", "holes-closed", "pickle", "fork"})

    def _store(self, cells, payloads, lengths):
        if not self._lengths[cells].any():
            super()._store(cells, payloads, lengths)


class MiscountsLiveBytes(HonestMemory):
    """Never subtracts what was overwritten."""

    breaks = frozenset({"read-back", "random-workload", "holes-closed", "pickle", "fork"})

    def _forget(self, cells):
        live = self._live
        starts = super()._forget(cells)
        self._live = live
        return starts

    def _close_holes(self):
        """Would count every moved payload again."""


class WrongAddresses(HonestMemory):
    """Points one byte too far."""

    breaks = frozenset({"addresses"})

    def addresses(self, starts, lengths, /):
        return super().addresses(starts, lengths) + np.uint64(1)


class ReadsAnywhere(HonestMemory):
    """Answers every position with something."""

    breaks = frozenset({"wrong-position"})

    def view(self, start, length, /):
        try:
            return super().view(start, length)
        except RuntimeError:
            return memoryview(bytes(min(length, 10)))


class TakesCellsTwice(HonestMemory):
    """Does not look at what it is given."""

    breaks = frozenset({"wrong-cells"})

    def reserve(self, cells, worst_case_bytes, /):
        cells = np.asarray(cells)
        once = np.array(list(dict.fromkeys(cells.tolist())), cells.dtype) if cells.ndim == 1 else cells
        return super().reserve(once, worst_case_bytes)


class WrapsNegativeCells(HonestMemory):
    """Counts negative cells from the end, as Python does."""

    breaks = frozenset({"wrong-cells"})

    def _as_cells(self, cells):
        cells = np.asarray(cells)
        return super()._as_cells(np.where(cells < 0, cells + self.cells, cells) if cells.dtype.kind == "i" else cells)


class BelievesLengths(HonestMemory):
    """Stores the sum of the lengths, whatever was reserved."""

    breaks = frozenset({"wrong-lengths"})

    def commit(self, lengths, /):
        cells, _ = self._reserved or (np.empty(0, np.int64), 0)
        self._reserved = cells, 1 << 40
        self._staging = np.resize(self._staging, max(1 << 16, len(self._staging)))
        super().commit(np.abs(np.ravel(lengths))[: len(cells)])


class NeverReuses(HonestMemory):
    """Leaves every emptied segment where it is."""

    breaks = frozenset({"steady-state", "holes-closed"})

    def _drop(self, number):
        """Would free the segment."""

    def _close_holes(self):
        """Would move what is left."""


class MovesInSilence(HonestMemory):
    """Says that nothing ever moves."""

    breaks = frozenset({"moves-counted"})

    @property
    def moves(self):
        return 0


class ClearsHalf(HonestMemory):
    """Forgets to empty the last cell."""

    breaks = frozenset({"clear", "random-workload"})

    def clear(self):
        last = self._starts[-1], self._lengths[-1]
        data = bytes(self.view(int(last[0]), int(last[1]))) if last[0] >= 0 else b""
        super().clear()
        if data:
            self.reserve(np.array([self.cells - 1]), len(data))[:] = np.frombuffer(data, np.uint8)
            self.commit(np.array([len(data)]))


class PicklesNothing(HonestMemory):
    """Comes back empty."""

    breaks = frozenset({"pickle", "pickle-keeps-order"})

    def _resume(self, snapshot):
        """Would store what was packed."""


class EvictsTheNewest(HonestRing):
    """Refuses to make room: drops what it should store."""

    breaks = frozenset({"evicts-oldest", "evicting-workload", "stale-position", "too-large"})

    def _store(self, cells, payloads, lengths):
        if self._live + len(payloads) <= self._capacity or len(payloads) > self._capacity:
            super()._store(cells, payloads, lengths)


class EvictsCellByCell(HonestRing):
    """Tears rows apart."""

    breaks = frozenset({"evicts-oldest", "evicting-workload"})

    def _store(self, cells, payloads, lengths):
        super()._store(cells, payloads, lengths)
        self._queue._begins[: self._queue._tail] = True


class DoesNotCount(HonestRing):
    """Evicts in silence."""

    breaks = frozenset({"evicts-oldest"})

    @property
    def evicted(self):
        return Evictions()


class CountsReplacements(HonestRing):
    """Takes every overwritten cell for an evicted one."""

    breaks = frozenset({"replacing-is-not-evicting", "evicts-oldest", "random-workload"})

    def _forget(self, cells):
        replaced = int((self._starts[cells] >= 0).sum())
        counted = self._evicted
        starts = super()._forget(cells)
        self._evicted = Evictions(counted.rows, counted.cells + replaced, counted.nbytes)
        return starts


class EvictsBeforeRefusing(HonestRing):
    """Makes room for a row before it looks at its size."""

    breaks = frozenset({"too-large"})

    def _store(self, cells, payloads, lengths):
        if len(payloads) > self._capacity:
            self._make_room(self._tail)
        super()._store(cells, payloads, lengths)


class TakesAnyCapacity(HonestRing):
    """Believes every number."""

    breaks = frozenset({"wrong-parameters"})

    def __init__(self, cells, capacity):
        super().__init__(cells, capacity if isinstance(capacity, int) and capacity > 1 else 1 << 16)


class ReadsStalePositions(HonestRing):
    """Returns what has been written over."""

    breaks = frozenset({"stale-position", "wrong-position"})

    def view(self, start, length, /):
        place = start % self._capacity
        return self._block.view(place, length)

    def addresses(self, starts, lengths, /):
        return (starts % self._capacity).astype(np.uint64) + np.uint64(self._block.address)


class PretendsToBeEmpty(HonestMemory):
    """Says that a new heap holds its first cell."""

    breaks = frozenset({"empty", "reservation", "wrong-cells", "wrong-lengths", "random-workload", "clear", "pickle"})

    def locate(self, cells, /):
        starts, lengths = super().locate(cells)
        starts[(np.asarray(cells) == 0) & (starts < 0)] = self._current << 32
        return starts, lengths


class ForgetsInChildren(HonestMemory):
    """Keeps its memory from forked children."""

    breaks = frozenset({"fork"})

    def __init__(self, cells):
        super().__init__(cells)
        self.home = os.getpid()

    def view(self, start, length, /):
        return super().view(start, length) if os.getpid() == self.home else memoryview(bytes(length))


LIARS = [liar for liar in list(globals().values()) if isinstance(liar, type) and hasattr(liar, "breaks")]


def plugin(liar):
    """The liar as its distribution would hand it over."""
    required = ("capacity",) if issubclass(liar, RingHeap) else ()
    return HeapPlugin(protocol=1, factory=liar, summary=liar.__doc__, required=required)

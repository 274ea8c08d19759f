"""Heaps that lie. Each is a built-in one but for one thing, and names the rules that this must break, all of them."""

import os
from contextlib import suppress

import numpy as np

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.heaps import Evictions, HeapPlugin, StateError, TableHeap
from sb3_extra_buffers.heaps.memory import MemoryHeap
from sb3_extra_buffers.heaps.ring import RingHeap
from sb3_extra_buffers.memory import FlatBytes


class HonestMemory(MemoryHeap):
    """Keeps every rule."""

    breaks: frozenset[str] = frozenset()
    declares: dict[str, object] = {}


class HonestRing(RingHeap):
    """Keeps every rule."""

    breaks: frozenset[str] = frozenset()
    declares: dict[str, object] = {}


class ShowsReservations(HonestMemory):
    """Empties cells as soon as they are reserved."""

    breaks = frozenset({"interrupts", "reservation"})

    def locate(self, cells, /):
        starts, lengths = super().locate(cells)
        hidden = np.isin(cells, self._reserved[0] if self._reserved else [])
        return np.where(hidden, -1, starts), np.where(hidden, 0, lengths)


class ReservesTooMuch(HonestMemory):
    """Hands out and believes in more room than was asked for."""

    breaks = frozenset({"interrupts", "put", "reservation", "wrong-cells", "wrong-lengths"})

    def reserve(self, cells, worst_case_bytes, /):
        return super().reserve(cells, worst_case_bytes + 16)


class IgnoresOverwrites(HonestMemory):
    """Keeps the first payload of every cell."""

    breaks = frozenset(
        {"fork", "holes-closed", "large-payloads", "pickle", "put", "random-workload", "read-back", "state"}
    )

    def _store(self, cells, payloads, lengths):
        if not self._lengths[cells].any():
            super()._store(cells, payloads, lengths)


class MiscountsLiveBytes(HonestMemory):
    """Counts payloads that were overwritten."""

    breaks = frozenset({"interrupts", "fork", "holes-closed", "pickle", "put", "random-workload", "read-back", "state"})

    @property
    def live(self):
        return int(self._limits.sum())


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

    breaks = frozenset({"put", "wrong-cells"})

    def _as_cells(self, cells):
        cells = np.asarray(cells)
        return super()._as_cells(np.where(cells < 0, cells + self.cells, cells) if cells.dtype.kind == "i" else cells)


class BelievesLengths(HonestMemory):
    """Stores the sum of the lengths, whatever was reserved."""

    breaks = frozenset({"wrong-lengths"})

    def commit(self, lengths, /):
        cells, _, staging = self._reserved or ([], 0, np.zeros(1, np.uint8))
        self._reserved = cells, 1 << 40, np.resize(staging, max(1 << 16, len(staging)))
        super().commit(np.abs(np.ravel(lengths))[: len(cells)])


class NeverReuses(HonestMemory):
    """Leaves every emptied segment where it is."""

    breaks = frozenset({"heap-leaks", "holes-closed", "interrupts", "steady-state"})

    def _empty(self):
        return []

    def _emptied(self, counts):
        return []

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

    breaks = frozenset({"interrupts", "clear", "random-workload", "state"})

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

    breaks = frozenset({"evicting-workload", "eviction-counts", "evicts-oldest", "stale-position", "too-large"})

    def _store(self, cells, payloads, lengths):
        if self._live + len(payloads) <= self._capacity or len(payloads) > self._capacity:
            super()._store(cells, payloads, lengths)


class EvictsCellByCell(HonestRing):
    """Tears rows apart."""

    breaks = frozenset({"interrupts", "evicting-workload", "eviction-counts", "evicts-oldest"})

    def _store(self, cells, payloads, lengths):
        super()._store(cells, payloads, lengths)
        self._queue._begins[: self._queue.ends[1]] = True


class DoesNotCount(HonestRing):
    """Evicts in silence."""

    breaks = frozenset({"interrupts", "evicts-oldest", "eviction-counts"})

    @property
    def evicted(self):
        return Evictions()


class CountsReplacements(HonestRing):
    """Takes every overwritten cell for an evicted one."""

    breaks = frozenset({"interrupts", "eviction-counts", "random-workload", "replacing-is-not-evicting"})

    def _store(self, cells, payloads, lengths):
        replaced = int((self._lengths[cells] > 0).sum())
        super()._store(cells, payloads, lengths)
        counted = self._evicted
        self._evicted = Evictions(counted.rows, counted.cells + replaced, counted.nbytes)


class EvictsBeforeRefusing(HonestRing):
    """Makes room for a row before it looks at its size."""

    breaks = frozenset({"too-large"})

    def _store(self, cells, payloads, lengths):
        if len(payloads) > self._capacity:
            self._make_room([], self._tail)
        super()._store(cells, payloads, lengths)


class TakesAnyCapacity(HonestRing):
    """Believes every number."""

    breaks = frozenset({"wrong-parameters"})

    def __init__(self, cells, capacity):
        super().__init__(cells, capacity if isinstance(capacity, int) and capacity > 1 else 1 << 16)


class ReadsStalePositions(HonestRing):
    """Returns what has been written over."""

    breaks = frozenset({"stale-position", "state", "wrong-position"})

    def view(self, start, length, /):
        place = start % self._capacity
        return self._block.view(place, length)

    def addresses(self, starts, lengths, /):
        return (starts % self._capacity).astype(np.uint64) + np.uint64(self._block.address)


class PretendsToBeEmpty(HonestMemory):
    """Says that a new heap holds its first cell."""

    breaks = frozenset(
        {
            "interrupts",
            "clear",
            "empty",
            "pickle",
            "put",
            "random-workload",
            "reservation",
            "state",
            "state-refused",
            "wrong-cells",
            "wrong-lengths",
        }
    )

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


class ZeroesLargePayloads(HonestMemory):
    """Loses what lies beyond 64 KiB of a payload."""

    breaks = frozenset({"grows", "large-payloads", "put"})
    limit = 1 << 16

    def _store(self, cells, payloads, lengths):
        data, begin = bytearray(payloads), 0
        for length in lengths:
            keep = min(length, self.limit)
            data[begin + keep : begin + length] = bytes(length - keep)
            begin += length
        super()._store(cells, memoryview(data), lengths)

    def put(self, cell, parts, nbytes, /):
        self.reserve(np.array([cell]), nbytes)[:] = np.concatenate(parts)
        self.commit(np.array([nbytes]))


class ZeroesHugePayloads(ZeroesLargePayloads):
    """Loses what lies beyond 1 MiB of a payload."""

    breaks = frozenset({"large-payloads"})
    limit = 1 << 20


class HidesItsMemory(HonestMemory):
    """Counts the index alone."""

    breaks = frozenset({"nbytes"})

    @property
    def nbytes(self):
        return self._index_nbytes()


class ClaimsAFile(HonestRing):
    """Says that its payloads are in a file, and counts them all the same."""

    breaks = frozenset({"nbytes"})
    payloads_in_memory = False


class LeaksPayloads(HonestMemory):
    """Keeps every payload that was ever written, and does not count it."""

    breaks = frozenset({"heap-leaks"})

    def _store(self, cells, payloads, lengths):
        self.__dict__.setdefault("kept", []).append(bytes(payloads))
        super()._store(cells, payloads, lengths)


class LeaksItsIndex(HonestRing):
    """Counts more memory with every row, as if it kept it."""

    breaks = frozenset({"heap-leaks"})

    def _index_nbytes(self):
        return super()._index_nbytes() + (self._tail << 3)


class CountsOneRowForAll(HonestRing):
    """Counts what is dropped at once as one row."""

    breaks = frozenset({"eviction-counts"})

    def _counting(self, cells, rows):
        return super()._counting(cells, min(rows, 1))


class CountsHalfTheBytes(HonestRing):
    """Counts the bytes of the last cell only."""

    breaks = frozenset({"interrupts", "evicts-oldest", "eviction-counts"})

    def _counting(self, cells, rows):
        *attribute, evicted = super()._counting(cells, rows)
        nbytes = self._evicted.nbytes + self._length_of[cells[-1]]
        return *attribute, Evictions(evicted.rows, evicted.cells, nbytes)


class AlwaysHopes(HonestRing):
    """Never says that a row fits no heap of its size."""

    breaks = frozenset({"never-fits", "refuse-too-large"})

    def refuse_too_large(self, lengths):
        if sum(lengths) > self._capacity:
            raise HeapFullError(self.label, sum(lengths), self._capacity)

    def _plan(self, lengths, total):
        self.refuse_too_large(lengths)
        return super()._plan(lengths, total)


class RefusesTooMuch(HonestRing):
    """Says of a row that just fits that it never does, before it is written."""

    breaks = frozenset({"refuse-too-large"})

    def refuse_too_large(self, lengths):
        super().refuse_too_large([sum(lengths) + 1])


class HonestStrictRing(HonestRing):
    """Refuses what finds no room. Keeps every rule."""

    refuses_when_full = True

    def _check_room(self, cells, oldest):
        overtaken, starts, _ = self._queue.overtaken(oldest)
        for cell, start in zip(overtaken, starts):
            if self._start_of[cell] == start and cell not in cells:
                raise HeapFullError(self.label, 1, self._capacity)


class StrictInWordsOnly(HonestStrictRing):
    """Says that it refuses, and evicts."""

    breaks = frozenset({"refuses-when-full"})

    def _check_room(self, cells, oldest):
        """Would refuse."""


class GivesUpAtOnce(HonestStrictRing):
    """Says of every row that finds no room that it never fits."""

    breaks = frozenset({"refuses-when-full"})

    def _check_room(self, cells, oldest):
        try:
            super()._check_room(cells, oldest)
        except HeapFullError as error:
            error.never_fits = True
            raise


class PutsBackwards(HonestMemory):
    """Joins the parts of a payload in the wrong order."""

    breaks = frozenset({"put"})

    def put(self, cell, parts, nbytes, /):
        super().put(cell, parts[::-1], nbytes)


class PutsAnywhere(HonestMemory):
    """Counts negative cells from the end."""

    breaks = frozenset({"put"})

    def put(self, cell, parts, nbytes, /):
        super().put(cell % self.cells, parts, nbytes)


class HonestRemote(HonestMemory):
    """Fetches payloads into an array. Keeps every rule."""

    def bring(self, starts, lengths, /):
        content = np.frombuffer(bytearray(self._join(starts, lengths) or b"0"), np.uint8)
        return FlatBytes(content), lengths.cumsum() - lengths


class BringsInItsOwnOrder(HonestRemote):
    """Fetches payloads in the order of the heap."""

    breaks = frozenset({"bring"})

    def bring(self, starts, lengths, /):
        order = np.argsort(starts, kind="stable")
        return super().bring(starts[order], lengths[order])


class BringsOnce(HonestRemote):
    """Fetches a payload once, however often it is asked for."""

    breaks = frozenset({"bring"})

    def bring(self, starts, lengths, /):
        _, first = np.unique(starts, return_index=True)
        return super().bring(starts[np.sort(first)], lengths[np.sort(first)])


class SavesWithoutCounts(HonestRing):
    """Forgets what it has evicted when it is saved."""

    breaks = frozenset({"state"})

    def state(self):
        found = super().state()
        found.facts["evicted"] = [0, 0, 0]
        return found


class RestoresBackwards(HonestRing):
    """Saves rows in the order of writing, and restores them in the opposite one."""

    breaks = frozenset({"state-keeps-order"})

    def state(self):
        return TableHeap.state(self)

    def restore(self, state):
        TableHeap.restore(self, state)
        cells, lengths = state.arrays["order"].tolist(), state.arrays["lengths"].tolist()
        rows = np.flatnonzero(state.arrays["rows"])
        contents = {cell: bytes(self.view(*(part.item() for part in self.locate(np.array([cell]))))) for cell in cells}
        evicted = self._evicted
        self.clear()
        for first, last in reversed(list(zip(rows, [*rows[1:], len(cells)]))):
            row = cells[first:last]
            self._store(row, memoryview(b"".join(contents[cell] for cell in row)), lengths[first:last])
        self._evicted = evicted


class TakesAnyState(HonestMemory):
    """Becomes what it can, and ignores the rest."""

    breaks = frozenset({"state-refused"})

    def restore(self, state):
        with suppress(StateError):
            super().restore(state)


class RewritesItsLog(HonestMemory):
    """Saves under one name what is written over."""

    breaks = frozenset({"state", "state-logs"})

    def _segment(self, block):
        segment = super()._segment(block)
        segment.log = 0
        return segment


class NamesAStranger(HonestMemory):
    """Declares a parameter of this machine that it does not have."""

    breaks = frozenset({"declarations"})
    declares = {"local": ("folder",)}


class FitsWithoutCapacity(HonestMemory):
    """Wants the worst case as its capacity, and has none."""

    breaks = frozenset({"declarations"})
    declares = {"fits_worst_case": True}


class RemoteInMemory(HonestRemote):
    """Has its payloads elsewhere, and declares that they are in memory."""

    breaks = frozenset({"declarations"})
    declares = {"in_memory": True}


class GrowsALittle(HonestMemory):
    """Refuses more than 12 MiB."""

    breaks = frozenset({"grows", "large-payloads"})

    def _allocate(self, nbytes):
        if self.capacity + nbytes > 12 << 20:
            raise HeapFullError(self.label, nbytes, 0)
        return super()._allocate(nbytes)


class HasNoLimitAndDoesNotGrow(HonestMemory):
    """Declares neither that it grows nor a capacity."""

    breaks = frozenset({"declarations"})
    declares = {"grows": False}


class CountsInTwoSteps(HonestMemory):
    """Has a wrong count of live bytes between two lines."""

    breaks = frozenset({"interrupts"})

    def commit(self, lengths, /):
        super().commit(lengths)
        self._totals[0] += 1
        self._totals[0] -= 1


class WritesInPlace(HonestMemory):
    """Writes a new payload over the old one if it has the same size."""

    breaks = frozenset({"interrupts"})

    def _store(self, cells, payloads, lengths):
        if len(cells) == 1 and self._length_of[cells[0]] == lengths[0]:
            old = self.view(self._start_of[cells[0]], lengths[0])
            old[: lengths[0] // 2] = payloads[: lengths[0] // 2]
            old[lengths[0] // 2 :] = payloads[lengths[0] // 2 :]
        else:
            super()._store(cells, payloads, lengths)


LIARS = [liar for liar in list(globals().values()) if isinstance(liar, type) and hasattr(liar, "breaks")]


def plugin(liar):
    """The liar as its distribution would hand it over."""
    required = ("capacity",) if issubclass(liar, RingHeap) else ()
    return HeapPlugin(1, liar, liar.__doc__, required, **{"grows": issubclass(liar, MemoryHeap), **liar.declares})

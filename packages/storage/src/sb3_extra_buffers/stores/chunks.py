"""``ChunkStore``: complete chunks of frames in a section of a heap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CellSpec, Codec, CodecSpec, bind, decode_batch
from sb3_extra_buffers.errors import HeapStateError
from sb3_extra_buffers.frames import Change, Chunks, FrameKernels, Known, Places, apply_changes
from sb3_extra_buffers.heaps import DirectHeap, Heap, MovingHeap, StrictHeap, within_reach
from sb3_extra_buffers.heaps.state import State, StateError, used, within
from sb3_extra_buffers.memory import Bytes, ByteSource, Indices, untouched
from sb3_extra_buffers.stores.auto import SMALL_CHUNK, Role, choose_for_chunks
from sb3_extra_buffers.stores.reference_frames import ReferenceFrames

#: The smallest size that chunks are padded to before they are compressed.
_MIN_PADDED = 256
_MAX_EXPONENT = 31
#: A codec that compresses only large chunks must save a fifth to be worth its time.
_PAYS = 0.8
#: One of so many chunks of a batch that has no known address is few.
_MANY = 8
#: Evicted chunks that are remembered until it is asked who reached into them.
MAX_FRESH = 256


def describe_coding(every: CodecSpec | Role | None, large: CodecSpec | Role | None) -> str:
    """How chunks are compressed: by what every chunk goes through, or only large ones."""
    codec = large if every is None else every
    if codec is None:
        return "patches"
    return f"patches, {codec if isinstance(codec, CodecSpec) else 'compressed'}{' if large' if every is None else ''}"


class ChunkStore:
    """Chunks by slot: packed, and compressed if that was asked for or pays.

    A codec is bound to cells of one size, and chunks have all sizes. So they are padded with zeros to a power of two,
    which costs a few bytes each. A payload that is no smaller than its chunk is dropped for the chunk itself.

    :param kernels: choose reference frames
    :param codec: compresses every chunk: a codec, or a role for the automatic choice; ``None`` compresses only chunks
        that patches do not make small
    :param fallback: a role for these; ``None`` does not compress them
    :param heap: holds the payloads; several stores may share it
    :param first: first cell of this store's section of the heap
    :param slots: number of chunks there can be
    :param streams: number of streams they come from
    :param frame_nbytes: size of a frame
    :param threads: threads used to decompress
    :param is_bounded: whether the heap has a limit, and may evict chunks
    """

    def __init__(
        self,
        kernels: FrameKernels,
        codec: CodecSpec | Role | None,
        fallback: Role | None,
        heap: Heap,
        first: int,
        slots: int,
        streams: int,
        frame_nbytes: int,
        threads: int | None = None,
        *,
        is_bounded: bool = True,
    ) -> None:
        self.is_bounded = is_bounded
        self.reference_frames = ReferenceFrames(kernels, streams, slots, frame_nbytes)
        #: How codecs are chosen, at the first chunk that needs one.
        self._roles = codec if isinstance(codec, Role) else None, fallback
        self._codec = codec if isinstance(codec, CodecSpec) else None
        self._fallback: CodecSpec | None = None
        self._heap = heap
        self._direct = heap if isinstance(heap, DirectHeap) else None
        self._moving = heap if isinstance(heap, MovingHeap) else None
        #: Whether a full heap refuses a chunk instead of evicting the oldest.
        self.refuses = isinstance(heap, StrictHeap) and heap.refuses_when_full
        self._first = first
        self._threads = threads
        #: For each slot, the power of two that its chunk is padded to; 0 for a chunk that is not compressed.
        self._padded = untouched(slots)
        #: One past the last slot that was ever used.
        self._end = 0
        self._codecs: dict[int, Codec] = {}
        self._moves: int | None = None
        self._order = _WriteOrder(slots) if is_bounded else None
        #: For each slot, whether its chunk was evicted or dropped.
        self.gone = untouched(slots, np.bool_)
        #: The slots where this happened lately, at most one more than :data:`MAX_FRESH`.
        self.fresh: list[int] = []
        #: Number of evicted payloads when it was last looked which.
        self.noted = 0
        self._forget_addresses()

    @property
    def slots(self) -> int:
        """Number of chunks there can be."""
        return len(self._padded)

    @property
    def overhead(self) -> int:
        """Bytes of memory besides payloads."""
        per_slot = 0 if self._order is None else self._order.itemsize + self.gone.itemsize
        return self.reference_frames.nbytes + self._end * per_slot

    def describe(self) -> str:
        """How chunks are compressed."""
        every, fallback = self._roles
        return describe_coding(self._codec or every, self._fallback or fallback)

    def put(self, slot: int, parts: Sequence[Bytes], raw_nbytes: int) -> None:
        """Store a chunk. If the heap has no room for it, all chunks stay as they were.

        :param slot: its slot
        :param parts: its bytes, in pieces
        :param raw_nbytes: size of its frames, uncompressed
        """
        nbytes, exponent = sum(map(len, parts)), 0
        if self._codec is not None or self._roles[0] is not None or nbytes * SMALL_CHUNK > raw_nbytes:
            parts, exponent = self._compressed(parts, nbytes)
            nbytes = sum(map(len, parts))
        if self._order is not None:
            self._order.remove(slot)  # an interrupted put is repeated; until then only the open chunk is needed
        self._put(self._first + slot, parts, nbytes)
        self._padded[slot] = exponent
        self._end = max(self._end, slot + 1)
        self._addresses[slot] = 0
        if self._order is not None:
            apply_changes([(self.gone, slot, False), *self._order.appending(slot)])

    def beginning(self, slot: int) -> list[Change]:
        """The changes that make a slot that of an open chunk."""
        if self._order is not None:
            self._order.remove(slot)
        return [(self.gone, slot, False)] if self.gone.item(slot) else []

    def losing(self, slots: list[int]) -> list[Change]:
        """The changes that lose chunks. Of one that it did not take, a heap may still have the one before it."""
        self.fresh = [*self.fresh, *slots][-MAX_FRESH - 1 :]  # what is not gone yet does not count
        gone = np.array(slots, np.int64)
        return [(self.gone, gone, True), (self._addresses, gone, 0)]

    def note_evictions(self) -> None:
        """Find out which chunks the heap has evicted: the oldest."""
        if self._order is None or (evicted := self._heap.evicted.cells) == self.noted:
            return
        slots: list[int] = []
        for slot in self._order:
            if self._heap.locate(np.array([self._first + slot]))[0][0] >= 0:
                break
            slots.append(slot)
        if slots:
            apply_changes(self.losing(slots))  # again, if an interrupt comes before the last line
            for slot in slots:
                self._order.remove(slot)
        self.noted = evicted

    def _put(self, cell: int, parts: Sequence[Bytes], nbytes: int) -> None:
        if self._direct is not None:
            self._direct.put(cell, parts, nbytes)
        else:
            np.concatenate(parts, out=self._heap.reserve(np.array([cell]), nbytes))
            self._heap.commit(np.array([nbytes]))

    def load(self, slots: Sequence[int], /) -> Chunks:
        numbers = np.asarray(slots, np.int64)
        starts, lengths = self.locate(numbers)
        packed: list[Bytes] = [np.empty(0, np.uint8)] * len(slots)
        plain = np.flatnonzero(self._padded[numbers] == 0)
        source, places = within_reach(self._heap, starts[plain], lengths[plain])
        for index, place in zip(plain.tolist(), places.tolist()):
            packed[index] = np.frombuffer(source.view(place, int(lengths[index])), np.uint8)
        for indices, rows in self._decompressed(numbers, starts, lengths):
            for index, row in zip(indices.tolist(), rows):
                packed[index] = row
        return Chunks(packed, self.reference_frames.of(slots))

    def known(self) -> Known:
        self.note_evictions()
        # Not every heap counts its moves.
        moves = None if self._moving is None else self._moving.moves
        if moves != self._moves or moves is None:
            self._forget_addresses()
            self._moves = moves
        reference = self.reference_frames
        return Known(self._addresses, self._lengths, reference.of_slot, reference.addresses)

    def place(self, slots: Indices, /) -> Places:
        self.known()  # forgets addresses that have changed
        kept: list[object] = []
        unknown = slots[(self._addresses[slots] == 0) & (self._padded[slots] == 0)]
        if len(unknown):
            # Many are found all at once, so that later batches need not ask; unless the heap does not count its moves.
            few = self._moves is None or _MANY * len(unknown) < len(slots)
            kept.append(self._find_plain(unknown if few else np.arange(self._end)))
        addresses, lengths = self._addresses[slots], self._lengths[slots]
        missing = np.flatnonzero(addresses == 0)
        if len(missing):
            numbers = slots[missing]
            for indices, rows in self._decompressed(numbers, *self.locate(numbers)):
                steps = np.arange(len(rows), dtype=np.uint64) * np.uint64(rows.shape[1])
                addresses[missing[indices]], lengths[missing[indices]] = rows.ctypes.data + steps, rows.shape[1]
                kept.append(rows)
        reference = self.reference_frames
        return Places(addresses, lengths, reference.addresses[reference.of_slot[slots]], kept)

    def are_plain(self, slots: Indices) -> NDArray[np.bool_]:
        """Which of these chunks are not compressed: their payloads are their bytes."""
        plain: NDArray[np.bool_] = self._padded[slots] == 0
        return plain

    def _find_plain(self, slots: Indices) -> ByteSource:
        """Remember the addresses of those of these chunks that are not compressed; return what holds their bytes."""
        unknown = slots[(self._addresses[slots] == 0) & (self._padded[slots] == 0) & ~self.gone[slots]]
        starts, lengths = self._heap.locate(unknown + self._first)
        held = starts >= 0
        source, places = within_reach(self._heap, starts[held], lengths[held])
        # Lengths first: an address says that both are known.
        self._lengths[unknown[held]] = lengths[held]
        self._addresses[unknown[held]] = source.addresses(places, lengths[held])
        return source

    def _forget_addresses(self) -> None:
        self._addresses = untouched(len(self._padded), np.uint64)
        self._lengths = untouched(len(self._padded), np.int64)

    def stored_nbytes(self, slots: Indices) -> int:
        """Bytes of the payloads of these chunks."""
        return int(self._heap.locate(slots + self._first)[1].sum())

    def clear(self) -> None:
        """Forget all chunks."""
        self._heap.clear()
        self.reference_frames.clear()
        if self._order is not None:
            self._order.clear()
        self.gone[self.gone] = False
        self.fresh, self.noted = [], 0
        self._forget_addresses()

    def locate(self, slots: Indices) -> tuple[Indices, Indices]:
        """Positions and lengths of the payloads of these chunks in the heap."""
        starts, lengths = self._heap.locate(slots + self._first)
        if len(starts) and (starts.min() < 0 or self.gone[slots].any()):
            found = "a chunk of its frames was evicted to make room, or did not fit"
            raise HeapStateError(type(self._heap).__name__, "read", found, "Give the heap a larger capacity.")
        return starts, lengths

    def _compressed(self, parts: Sequence[Bytes], nbytes: int) -> tuple[Sequence[Bytes], int]:
        """The payload of a chunk, and the power of two that it was padded to; 0 if it is the chunk itself."""
        every, fallback = self._roles
        is_every = self._codec is not None or every is not None
        if not is_every and fallback is None:
            return parts, 0
        exponent = max(nbytes, _MIN_PADDED).bit_length()
        padded = np.zeros(1 << exponent, np.uint8)
        np.concatenate(parts, out=padded[:nbytes])
        if self._codec is None and every is not None:
            self._codec = choose_for_chunks(every, padded).codec.spec
        if self._codec is None and fallback is not None and self._fallback is None:
            self._fallback = choose_for_chunks(fallback, padded).codec.spec
        payload = self._bound(exponent, self._codec or self._fallback).encode(padded)
        limit = nbytes if is_every else int(nbytes * _PAYS)
        return ([np.frombuffer(payload, np.uint8)], exponent) if len(payload) < limit else (parts, 0)

    def _decompressed(self, slots: Indices, starts: Indices, lengths: Indices) -> list[tuple[Indices, Bytes]]:
        """For each padded size of compressed chunks: which of the slots, and a row for each."""
        compressed = np.flatnonzero(self._padded[slots])
        if not len(compressed):
            return []
        found, exponents, lengths = [], self._padded[slots[compressed]], lengths[compressed]
        source, places = within_reach(self._heap, starts[compressed], lengths)  # all sizes at once
        for exponent in sorted(set(exponents.tolist())):
            part = np.flatnonzero(exponents == exponent)
            rows = np.empty((len(part), 1 << exponent), np.uint8)
            codec = self._bound(exponent, self._codec or self._fallback)
            decode_batch(codec, source, places[part], lengths[part], rows, threads=self._threads)
            found.append((compressed[part], rows))
        return found

    def _bound(self, exponent: int, spec: CodecSpec | None) -> Codec:
        if exponent not in self._codecs:
            assert spec is not None
            self._codecs[exponent] = bind(spec, CellSpec(np.uint8, 1 << exponent))
        return self._codecs[exponent]

    def state(self) -> State:
        """What another one on an equal heap needs in order to become this one."""
        specs = {name: None if spec is None else spec.to_json() for name, spec in self._specs().items()}
        facts = {**specs, "first": self._first, "end": self._end, "exponents": sorted(self._codecs)}
        arrays = {"padded": used(self._padded)}
        if self._order is not None:
            arrays |= {"gone": used(self.gone), "after": used(self._order.after)}
        return State(facts, arrays).put("bases", self.reference_frames.state())

    def restore(self, state: State) -> None:
        """Become what another one was. Its heap has been restored."""
        state.same(first=self._first)
        state.begin_of(padded=self._padded)
        within("padded", self._padded, 0, _MAX_EXPONENT)
        self._end = state.number("end", 0, len(self._padded))
        found = {name: state.fact(name, (dict, type(None))) for name in self._specs()}
        exponents = state.numbers("exponents")
        if exponents or found["codec"] is not None:
            # Compressed chunks need their codec; where there are none, any codec will do.
            self._codec, self._fallback = (None if one is None else CodecSpec.from_json(one) for one in found.values())
            for exponent in exponents:
                self._bound(exponent, self._codec or self._fallback)
        self.reference_frames.restore(state.part("bases"))
        self._forget_addresses()
        if self._order is not None:
            self._restore_order(self._order, state)

    def _restore_order(self, order: _WriteOrder, state: State) -> None:
        if "after" in state.arrays:
            state.begin_of(gone=self.gone, after=order.after)
            order.link()
        else:  # saved by an earlier version: the positions in our rings grow with the age
            starts, _ = self._heap.locate(self._first + np.arange(self._end))
            for slot in np.argsort(starts, kind="stable")[np.count_nonzero(starts < 0) :].tolist():
                apply_changes(order.appending(slot))

    def _specs(self) -> dict[str, CodecSpec | None]:
        return {"codec": self._codec, "fallback": self._fallback}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_addresses()  # they are those of the original


class _WriteOrder:
    """Slots in the order in which their chunks were written, which is that in which a heap evicts them.

    A linked list: entry 0 is the begin and the end, slot ``s`` has the entry ``s + 1``, and what is not listed has 0.
    """

    def __init__(self, slots: int) -> None:
        self.after, self._before = untouched(slots + 1, np.int32), untouched(slots + 1, np.int32)
        self.itemsize = self.after.itemsize + self._before.itemsize

    def __iter__(self) -> Iterator[int]:
        entry = 0
        while entry := self.after.item(entry):
            yield entry - 1

    def appending(self, slot: int) -> list[Change]:
        """The changes that list a slot, which is not listed, as the newest."""
        last, entry = self._before.item(0), slot + 1
        return [(self.after, last, entry), (self._before, entry, last), (self._before, 0, entry)]

    def remove(self, slot: int) -> None:
        """Take a slot off the list, if it is there."""
        before, after = self._before.item(slot + 1), self.after.item(slot + 1)
        if self.after.item(before) == slot + 1:
            own: list[Change] = [(self.after, slot + 1, 0), (self._before, slot + 1, 0)]
            apply_changes([(self.after, before, after), (self._before, after, before), *own])

    def clear(self) -> None:
        """Take all slots off the list."""
        apply_changes([(array, array.nonzero(), 0) for array in (self.after, self._before)])

    def link(self) -> None:
        """Complete a list of which only ``after`` is known. No entry is followed by two, so that it has an end."""
        within("after", self.after, 0, len(self.after) - 1)
        listed = np.flatnonzero(self.after)
        following = self.after[listed]
        last = np.setdiff1d(following, listed)
        if len(np.unique(following)) != len(following) or len(last) > 1 or listed[:1].any():
            raise StateError("the order of chunks is not a list")
        self._before[following] = listed
        self._before[0] = last[0] if len(last) else 0

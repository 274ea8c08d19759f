"""``FrameStore``: each frame once, as a patch on the frame before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError, HeapStateError
from sb3_extra_buffers.frames import Change, FrameGeometry, FrameKernels, OverlappingKernels, Streams
from sb3_extra_buffers.frames.streams import NONE
from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.chunks import MAX_FRESH, ChunkStore

#: Steps on either side of a cell where observations are looked for first that reach into an evicted chunk.
_NEAR = 32


def slots_for(geometry: FrameGeometry, chunk: int, streams: int, observations: int) -> int:
    """Number of chunks at one time in the worst case: observations that have no frame in common."""
    frames = geometry.depth * (observations + streams)
    # Twice that: chunks that are needed for a part of their frames only.
    return -(-2 * frames // chunk) + 4 * streams + 4


class FrameStore:
    """Observations that are stacks of frames. Next observations are numbered on behind the observations.

    Nothing is assumed about the frames: every observation is compared with the one before it, and only new frames are
    stored. So sharing is exact for every input, terminal observations included.

    :param streams: which frames each observation is made of
    :param chunks: holds complete chunks
    :param kernels: write and read observations
    :param cells: number of cells
    """

    def __init__(self, streams: Streams, chunks: ChunkStore, kernels: FrameKernels, cells: int) -> None:
        self.cells = cells
        self.row_nbytes = streams.geometry.row_nbytes
        self.streams = streams
        self.chunks = chunks
        self.kernels = kernels
        #: Number of evicted payloads when the last observations were last checked.
        self._noted = 0
        #: A cell, and how many cells right before it, in a circle, were held; ``None`` if that must be counted.
        self._run: tuple[int, int] | None = (0, cells)
        #: How many cells were written since, from this one on; ``None`` if they were not written in order.
        self._written: int | None = 0
        #: Chunks that were too large for the heap.
        self.dropped = 0
        for stream, slot in enumerate(streams.open.tolist()):
            streams.filling.begin(stream, chunks.reference_frames.open(stream, slot))

    @property
    def active(self) -> FrameStore:
        return self

    @property
    def overhead(self) -> int:
        return self.streams.nbytes + self.chunks.overhead

    def describe(self) -> str:
        streams = self.streams
        return f"frames ({streams.geometry}; {self.chunks.describe()}; chunks of {streams.chunk}; {self.kernels.name})"

    def write(self, cells: Indices, obs: Bytes | None, next_obs: Bytes | None = None, /) -> None:
        references = np.ascontiguousarray(cells)
        if obs is None:
            if next_obs is None:
                return
            references, obs, next_obs = references + self.cells, next_obs, None
        self._write(references, obs, next_obs)

    def _write(self, references: Indices, obs: Bytes, next_obs: Bytes | None = None, *, is_again: bool = False) -> None:
        """Write observations; ``is_again`` if they were stored before, and only get other chunks."""
        chunks, write, streams = self.chunks, self.kernels.write, self.streams
        if chunks.is_bounded:
            self._notice()  # other stores share the heap: evicted chunks must not be referred to
        noted = self._noted
        done, count = 0, len(obs) if next_obs is None else 2 * len(obs)
        while (done := write(streams, references, obs, done, next_obs)) < count:
            plane, index = divmod(done, len(obs))
            self._close((int(references[index]) + plane * self.cells) % streams.streams, is_again=is_again)
        if chunks.is_bounded and not is_again:
            if self._noted != noted:
                self._write_again(references, obs, next_obs)
            self._count_written(references, is_whole=count == streams.planes * len(obs))

    def _count_written(self, references: Indices, *, is_whole: bool) -> None:
        if self._run is not None and self._written is not None:
            begin = (self._run[0] + self._written) % self.cells
            in_order = is_whole and references.tolist() == [*range(begin, begin + len(references))]
            self._written = self._written + len(references) if in_order else None

    def _write_again(self, references: Indices, rows: Bytes, following: Bytes | None) -> None:
        """Write again what a chunk of the same call has evicted. Once: the heap may be too small."""
        if following is not None:
            references, rows = np.concatenate([references, references + self.cells]), np.concatenate([rows, following])
        lost = self.streams.reaching(self.chunks.gone, references)
        if lost.any():
            self._write(references[lost], rows[lost], is_again=True)

    def read(self, cells: Indices, out: Bytes | None, next_out: Bytes | None = None, /) -> None:
        references = np.ascontiguousarray(cells)
        if out is None:
            if next_out is None:
                return
            references, out, next_out = references + self.cells, next_out, None
        self.kernels.read(self.streams, self.chunks, references, out, next_out)

    @property
    def overlapping_nbytes(self) -> int:
        geometry = self.streams.geometry
        # Frames that are interleaved would make views that take torch three to five times as long to convert to floats.
        is_possible = geometry.pixels == 1 and geometry.depth > 1 and hasattr(self.kernels, "read_overlapping")
        return geometry.row_nbytes + geometry.frame_nbytes if is_possible else 0

    def read_overlapping(self, cells: Indices, out: Bytes, /) -> bool:
        kernels = cast("OverlappingKernels", self.kernels)
        return kernels.read_overlapping(self.streams, self.chunks, np.ascontiguousarray(cells), out)

    def stored_nbytes(self) -> int:
        streams = self.streams
        used = np.flatnonzero(streams.users[: int(streams.numbers[2])])
        return self.chunks.stored_nbytes(used) + streams.filling.packed_nbytes

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        self._notice()
        return ~self._are_lost(cells)

    def _are_lost(self, cells: Indices) -> NDArray[np.bool_]:
        streams = self.streams
        references = np.concatenate([cells + plane * self.cells for plane in range(streams.planes)])
        lost = streams.reaching(self.chunks.gone, references).reshape(streams.planes, -1)
        return np.logical_or.reduce(lost)  # type: ignore[no-any-return]

    def held_before(self, cell: int) -> int:
        self._notice()
        chunks, cells = self.chunks, self.cells
        held = self._run_before(cell) if len(chunks.fresh) <= MAX_FRESH else None
        if held is None:
            lost = np.flatnonzero(self._are_lost(np.arange(cell - cells, cell) % cells))
            held = cells - 1 - int(lost[-1]) if len(lost) else cells
        elif chunks.fresh:
            slots = np.unique(chunks.fresh)
            found = self._cells_reaching(slots[chunks.gone[slots]], cell - 1 - held)  # others have new chunks
            held = int(((cell - 1 - found) % cells).min(initial=held))
        self._run, self._written = (cell, held), 0
        chunks.fresh = []  # only now: after an interrupt they are looked at again
        return held

    def _run_before(self, cell: int) -> int | None:
        """How many cells right before this one were held before the latest evictions; ``None`` if that is not known."""
        if self._run is None:
            return None
        (begin, held), cells, written = self._run, self.cells, self._written
        if written is not None and (cell - begin - written) % cells == 0:
            return min(held + written, cells)
        # Cells were not written in order: are all held that came in between, and is the one before the run still lost?
        passed = (cell - begin) % cells
        lost = self._are_lost(np.append(np.arange(begin, begin + passed), begin - 1 - held) % cells)
        held += passed
        return None if lost[:-1].any() or (held < cells and not lost[-1]) else min(held, cells)

    def _cells_reaching(self, slots: Indices, near: int) -> Indices:
        """Cells with an observation that reaches into one of these chunks, which are looked for around a cell.

        A chunk knows how many they are. So the search ends where all are found, which is near the cell unless cells are
        written in another order than their numbers.
        """
        streams, cells = self.streams, self.cells
        users, half = int(streams.users[slots].sum()), _NEAR * streams.streams
        while users:
            window = np.arange(near - half, near + half) % cells if 2 * half < cells else np.arange(cells)
            planes = [window + plane * cells for plane in range(streams.planes)]
            references, count = np.concatenate([*planes, streams.own]), 0
            found = np.zeros(len(references), np.bool_)
            for some, reached in streams.walk(references):
                hit = np.isin(reached, slots)
                found[some[hit]] = True
                count += int(np.count_nonzero(hit))
            if count == users or len(window) == cells:
                return window[found[: -streams.streams].reshape(streams.planes, -1).any(axis=0)]
            half *= 4
        return np.empty(0, np.int64)

    def clear(self) -> None:
        self.chunks.clear()
        reference_frames = self.chunks.reference_frames
        self.streams.clear([reference_frames.open(stream, stream) for stream in range(self.streams.streams)])
        self._noted, self._run, self._written, self.dropped = 0, (0, self.cells), 0, 0

    def state(self) -> State:
        self._notice()
        found = State({"evicted": self._noted, "dropped": self.dropped})
        return found.put("streams", self.streams.state()).put("chunks", self.chunks.state())

    def restore(self, state: State, /) -> None:
        self._noted, self.dropped = (state.number(name, 0, 1 << 62) for name in ("evicted", "dropped"))
        self.chunks.restore(state.part("chunks"))
        self.streams.restore(state.part("streams"))
        self.chunks.noted, self._run = self._noted, None
        if state.facts.get("has_lost"):  # saved by an earlier version
            self._restore_lost(state.array("lost", np.bool_, self.streams.planes * self.cells))

    def _restore_lost(self, lost: NDArray[np.bool_]) -> None:
        """Find the chunks that are gone from the observations that are lost."""
        streams = self.streams
        used = np.setdiff1d(np.flatnonzero(streams.users), streams.open)
        self.chunks.gone[np.setdiff1d(used, streams.reached(np.flatnonzero(~lost)))] = True

    def _close(self, stream: int, *, is_again: bool) -> None:
        """Store the complete chunk of a stream, and begin another one."""
        streams = self.streams
        if streams.free_slots <= 2 * streams.streams and not is_again:
            self._gather()
        slot, filling = streams.open.item(stream), streams.filling
        if streams.sizes.item(slot) < streams.chunk:
            return  # gathering has closed it already
        if streams.users.item(slot) > 1:  # used by observations, not only open
            self._store(slot, stream)
        self.chunks.reference_frames.learn(stream, filling.tail[stream], filling.first_nbytes.item(stream))
        self._begin_chunk(stream)
        if self.chunks.is_bounded:
            self._notice()

    def _begin_chunk(self, stream: int, also: Sequence[Change] = ()) -> None:
        # An interrupt comes before or after begin_chunk(): a retry stores the same chunk again, or goes on in the next.
        slot = self.streams.next_slot
        reference_frame = self.chunks.reference_frames.open(stream, slot)
        self.streams.begin_chunk(stream, reference_frame, [*self.chunks.beginning(slot), *also])

    def _store(self, slot: int, stream: int) -> None:
        streams = self.streams
        size = streams.sizes.item(slot)
        try:
            self.chunks.put(slot, streams.filling.parts(stream, size), size * streams.geometry.frame_nbytes)
        except HeapFullError as error:
            # It will never fit: dropped like the oldest chunks, so that others can follow.
            if error.capacity and not self.chunks.refuses:
                self.dropped += 1
                self._begin_chunk(stream, [*self.chunks.losing([slot]), (streams.last_number, stream, NONE)])
                # True of the chunk, which is gone; the observation that is being written goes into another one.
                raise replace(error, never_fits=False) from error
            raise

    def _notice(self) -> None:
        """Find out which chunks were evicted since the last time, and keep new observations from referring to them."""
        chunks, streams = self.chunks, self.streams
        chunks.note_evictions()
        if chunks.noted != self._noted:
            chunks.gone[streams.open] = False  # of an open chunk, only the payload of an interrupted call is gone
            streams.last_number[streams.reaching(chunks.gone, streams.own)] = NONE
            self._noted = chunks.noted

    def _gather(self) -> None:
        """Write observations again whose chunks are hardly used otherwise, until there are slots to spare.

        Such chunks exist only if observations are overwritten in another order than they were written.
        """
        streams = self.streams
        while (free := streams.free_slots) <= 2 * streams.streams:
            references = np.arange(streams.planes * self.cells)
            references = references[streams.reaching(self._sparse_chunks(), references)]
            references = references[~streams.reaching(self.chunks.gone, references)]  # lost: cannot be read
            rows = np.empty((len(references), self.row_nbytes), np.uint8)
            self.kernels.read(streams, self.chunks, references, rows)
            self._write(references, rows, is_again=True)
            if streams.free_slots <= free:
                found = f"all {streams.slots} chunks hold something that is needed"
                hint = "Observations are overwritten in too wild an order for frames: use layout='cells'."
                raise HeapStateError("FrameStore", "store another chunk", found, hint)

    def _sparse_chunks(self) -> NDArray[np.bool_]:
        """For each slot, whether its chunk has few users; so few in all that their frames fit into the free slots."""
        streams = self.streams
        used = np.setdiff1d(np.flatnonzero(streams.users), [*streams.open, *streams.reached(streams.own)])
        used = used[~self.chunks.gone[used]]
        used = used[np.argsort(streams.users[used], kind="stable")]
        frames = np.cumsum(streams.users[used]) * streams.geometry.depth
        found = np.zeros(streams.slots, np.bool_)
        found[used[: max(1, int((frames <= streams.streams * streams.chunk).sum()))]] = True
        return found

"""``FrameStore``: each frame once, as a patch on the frame before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError, HeapStateError
from sb3_extra_buffers.frames import FrameGeometry, FrameKernels, Streams
from sb3_extra_buffers.stores.chunks import ChunkStore
from sb3_extra_buffers.views import Bytes, Indices


def slots_for(geometry: FrameGeometry, chunk: int, streams: int, observations: int) -> int:
    """How many chunks there may be at one time, in the worst case: observations that have no frame in common."""
    frames = geometry.depth * (observations + streams)
    # Twice that: chunks that are needed for a part of their frames only.
    return -(-2 * frames // chunk) + 4 * streams + 4


class FrameStore:
    """Observations that are stacks of frames, in one or two planes: what transitions start from, and lead to.

    Nothing is assumed of the frames: every observation is compared with the one before it, and what is new is stored.
    So sharing is exact for every input, terminal observations included.

    :param streams: the numbers that say which frames an observation is made of
    :param chunks: where complete chunks are
    :param kernels: what does the work
    :param cells: how many observations a plane has
    :param reason: how they are stored, for reports
    """

    def __init__(self, streams: Streams, chunks: ChunkStore, kernels: FrameKernels, cells: int, reason: str) -> None:
        self.cells = cells
        self.row_nbytes = streams.geometry.row_nbytes
        self._reason = reason
        self._streams = streams
        self._chunks = chunks
        self._kernels = kernels
        self._is_gathering = False
        self._lost: NDArray[np.bool_] | None = None
        self._evicted = 0
        #: Chunks that were too large for the heap.
        self.dropped = 0
        self._begin()

    @property
    def codec(self) -> str:
        """How frames are stored, and by which kernels."""
        return f"frames ({self._reason}; {self._kernels.name})"

    @property
    def overhead(self) -> int:
        """Bytes of memory besides patches."""
        return self._streams.nbytes + self._chunks.overhead

    def write(self, plane: int, cells: Indices, rows: Bytes) -> None:
        """Give observations of one plane new content."""
        self._write(np.ascontiguousarray(cells + plane * self.cells if plane else cells), rows)

    def write_both(self, cells: Indices, rows: Bytes, following: Bytes) -> None:
        """Give the same cells of both planes new content."""
        self._write(np.ascontiguousarray(cells), rows, following)

    def _write(self, references: Indices, rows: Bytes, following: Bytes | None = None) -> None:
        if self._chunks.evicted != self._evicted:
            self._note_evictions()  # others share the heap: what they drove out must not be referred to
        if self._lost is not None:
            self._unmark(self._lost, references, following)
        write, streams = self._kernels.write, self._streams
        done, count = 0, len(rows) if following is None else 2 * len(rows)
        while (done := write(streams, references, rows, done, following)) < count:
            plane, index = divmod(done, len(rows))
            self._close((int(references[index]) + plane * self.cells) % streams.streams)
        if self._lost is not None and not self._is_gathering:
            self._write_again(references, rows, following)

    def _unmark(self, lost: NDArray[np.bool_], references: Indices, following: Bytes | None) -> None:
        """What is written is not lost any more."""
        lost[references] = False
        if following is not None:
            lost[references + self.cells] = False

    def _write_again(self, references: Indices, rows: Bytes, following: Bytes | None) -> None:
        """Write what was lost to a chunk that was stored after it in the same call. Once: the heap may be too small."""
        assert self._lost is not None
        if following is not None:
            references, rows = np.concatenate([references, references + self.cells]), np.concatenate([rows, following])
        lost = self._lost[references]
        if lost.any():
            self._is_gathering = True
            try:
                self._write(references[lost], rows[lost])
            finally:
                self._is_gathering = False

    def read(self, plane: int, cells: Indices, out: Bytes) -> None:
        """Read observations of one plane."""
        references = np.ascontiguousarray(cells + plane * self.cells)
        self._refuse_lost(references)
        self._kernels.read(self._streams, self._chunks, references, out)

    def read_both(self, cells: Indices, out: Bytes, next_out: Bytes) -> None:
        """Read both planes of the same cells: frames that they have in common are decoded once."""
        if self._lost is not None:
            self._refuse_lost(np.concatenate([cells, cells + self.cells]))
        self._kernels.read(self._streams, self._chunks, np.ascontiguousarray(cells), out, next_out)

    def _refuse_lost(self, references: Indices) -> None:
        # A slot may still have the payload of a chunk that was there before the one that was lost.
        if self._lost is not None and self._lost[references].any():
            found = "a chunk of its frames was evicted to make room, or did not fit"
            raise HeapStateError("FrameStore", "read", found, "Give the heap a larger capacity.")

    def stored_nbytes(self) -> int:
        """How many bytes all frames take: those of complete chunks, and the others."""
        streams = self._streams
        used = np.flatnonzero(streams.users[: int(streams.numbers[2])])
        return self._chunks.stored_nbytes(used) + streams.filling.packed_nbytes

    def lost(self) -> NDArray[np.bool_] | None:
        """For each observation, plane by plane, whether the heap has dropped frames of it; ``None`` if it never did."""
        self._note_evictions()
        return self._lost

    def holds(self, plane: int, cells: Indices) -> NDArray[np.bool_]:
        """Which of these observations can be read."""
        lost = self.lost()
        return np.ones(len(cells), np.bool_) if lost is None else ~lost[cells + plane * self.cells]

    def clear(self) -> None:
        """Forget everything."""
        self._chunks.clear()
        self._lost, self._evicted, self.dropped = None, 0, 0
        self._streams.clear()
        self._begin()

    def _begin(self) -> None:
        """Give the first chunk of every stream its base."""
        for stream, slot in enumerate(self._streams.open.tolist()):
            self._streams.filling.begin(stream, self._chunks.bases.open(stream, slot))

    def _close(self, stream: int) -> None:
        """Store the chunk that a stream has completed, and let it begin another one."""
        streams, bases = self._streams, self._chunks.bases
        if streams.free_slots <= 2 * streams.streams and not self._is_gathering:
            self._gather()
        slot, filling = int(streams.open[stream]), streams.filling
        if streams.sizes[slot] < streams.chunk:
            return  # what was gathered has closed it already
        if streams.users[slot] > 1:  # by observations that are still there, not only by being open
            self._store(slot, stream)
        bases.learn(stream, filling.tail[stream], int(filling.first_nbytes[stream]))
        filling.begin(stream, bases.open(stream, streams.advance(stream)))
        self._note_evictions()

    def _store(self, slot: int, stream: int) -> None:
        streams = self._streams
        size = int(streams.sizes[slot])
        try:
            self._chunks.put(slot, streams.filling.parts(stream, size), size * streams.geometry.frame_nbytes)
        except HeapFullError as error:
            if error.capacity:  # it will never fit: dropped, as what is oldest is, so that others can follow
                self._lose(np.array([slot]))
                self.dropped += 1
                streams.filling.begin(stream, self._chunks.bases.open(stream, streams.advance(stream)))
            raise

    def _note_evictions(self) -> None:
        """Find out what was lost since the last time, and keep new observations from referring to it."""
        evicted = self._chunks.evicted
        if evicted == self._evicted:
            return
        self._evicted, streams = evicted, self._streams
        used = np.flatnonzero(streams.users)
        used = used[~np.isin(used, streams.open)]
        self._lose(used[~self._chunks.holds(used)])

    def _lose(self, slots: Indices) -> None:
        """Mark what reaches into these chunks as lost."""
        if not len(slots):
            return
        streams = self._streams
        gone = np.zeros(streams.slots, np.bool_)
        gone[slots] = True
        if self._lost is None:
            self._lost = np.zeros(streams.planes * streams.cells, np.bool_)
        self._lost[streams.reaching(gone)] = True
        for stream in range(streams.streams):
            own = np.array([streams.planes * streams.cells + stream])
            if any(gone[slots].any() for _, slots in streams.walk(own)):
                streams.forget_last(stream)

    def _gather(self) -> None:
        """Write observations again whose chunks are hardly used otherwise, until there are slots to spare.

        Only who overwrites observations in another order than that in which they came has chunks like this.
        """
        streams = self._streams
        while (free := streams.free_slots) <= 2 * streams.streams:
            references = streams.reaching(self._sparse_chunks())
            if self._lost is not None:
                references = references[~self._lost[references]]  # these cannot be read
            rows = np.empty((len(references), self.row_nbytes), np.uint8)
            self._kernels.read(streams, self._chunks, references, rows)
            self._is_gathering = True
            try:
                self._write(references, rows)
            finally:
                self._is_gathering = False
            if streams.free_slots <= free:
                found = f"all {streams.slots} chunks hold something that is needed"
                hint = "Observations are overwritten in too wild an order for frames: use layout='cells'."
                raise HeapStateError("FrameStore", "store another chunk", found, hint)

    def _sparse_chunks(self) -> NDArray[np.bool_]:
        """For each slot, whether its chunk has few users; so few in all that their frames fit into what is free."""
        streams = self._streams
        own = np.arange(len(streams.newest) - streams.streams, len(streams.newest))
        used = np.setdiff1d(np.flatnonzero(streams.users), [*streams.open, *streams.reached(own)])
        used = used[self._chunks.holds(used)]
        used = used[np.argsort(streams.users[used], kind="stable")]
        frames = np.cumsum(streams.users[used]) * streams.geometry.depth
        found = np.zeros(streams.slots, np.bool_)
        found[used[: max(1, int((frames <= streams.streams * streams.chunk).sum()))]] = True
        return found

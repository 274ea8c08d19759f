"""``FrameStore``: each frame once, as a patch on the frame before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import HeapFullError, HeapStateError
from sb3_extra_buffers.frames import FrameGeometry, FrameKernels, Streams
from sb3_extra_buffers.heaps.state import State
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores.chunks import ChunkStore


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
        #: Which frames observations are made of.
        self.streams = streams
        #: Where complete chunks of these are.
        self.chunks = chunks
        #: What does the work.
        self.kernels = kernels
        self._is_gathering = False
        self._lost: NDArray[np.bool_] | None = None
        self._evicted = 0
        #: Chunks that were too large for the heap.
        self.dropped = 0
        self._begin()

    @property
    def decided(self) -> FrameStore:
        """This store: it is known how frames are stacked."""
        return self

    @property
    def codec(self) -> str:
        """How frames are stored, and by which kernels."""
        return f"frames ({self._reason}; {self.kernels.name})"

    @property
    def overhead(self) -> int:
        """Bytes of memory besides patches."""
        return self.streams.nbytes + self.chunks.overhead

    def write(self, plane: int, cells: Indices, rows: Bytes) -> None:
        """Give observations of one plane new content."""
        self.write_both(cells + plane * self.cells if plane else cells, rows)

    def write_both(self, cells: Indices, rows: Bytes, following: Bytes | None = None) -> None:
        """Give the same cells of both planes new content, or those of the first one alone."""
        references = np.ascontiguousarray(cells)
        if self.chunks.evicted != self._evicted:
            self._note_evictions()  # others share the heap: what they drove out must not be referred to
        if self._lost is not None:
            self._unmark(self._lost, references, following)
        write, streams = self.kernels.write, self.streams
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
                self.write_both(references[lost], rows[lost])
            finally:
                self._is_gathering = False

    def read(self, plane: int, cells: Indices, out: Bytes) -> None:
        """Read observations of one plane."""
        references = np.ascontiguousarray(cells + plane * self.cells)
        self.refuse_lost(references)
        self.kernels.read(self.streams, self.chunks, references, out)

    def read_both(self, cells: Indices, out: Bytes, next_out: Bytes) -> None:
        """Read both planes of the same cells: frames that they have in common are decoded once."""
        if self._lost is not None:
            self.refuse_lost(np.concatenate([cells, cells + self.cells]))
        self.kernels.read(self.streams, self.chunks, np.ascontiguousarray(cells), out, next_out)

    def refuse_lost(self, references: Indices) -> None:
        """Raise if frames of these observations were dropped."""
        # A slot may still have the payload of a chunk that was there before the one that was lost.
        if self._lost is not None and self._lost[references].any():
            found = "a chunk of its frames was evicted to make room, or did not fit"
            raise HeapStateError("FrameStore", "read", found, "Give the heap a larger capacity.")

    def stored_nbytes(self) -> int:
        """How many bytes all frames take: those of complete chunks, and the others."""
        streams = self.streams
        used = np.flatnonzero(streams.users[: int(streams.numbers[2])])
        return self.chunks.stored_nbytes(used) + streams.filling.packed_nbytes

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
        self.chunks.clear()
        self._lost, self._evicted, self.dropped = None, 0, 0
        self.streams.clear()
        self._begin()

    def state(self) -> State:
        """What another one on an equal heap needs in order to become this one."""
        found = State({"evicted": self._evicted, "dropped": self.dropped, "has_lost": self._lost is not None})
        if self._lost is not None:
            found.arrays["lost"] = self._lost
        return found.put("streams", self.streams.state()).put("chunks", self.chunks.state())

    def restore(self, state: State) -> None:
        """Become what another one was. Its heap has been restored."""
        self._evicted, self.dropped = (state.number(name, 0, 1 << 62) for name in ("evicted", "dropped"))
        if state.fact("has_lost", bool):
            self._lost = state.array("lost", np.bool_, self.streams.planes * self.streams.cells).copy()
        self.chunks.restore(state.part("chunks"))
        self.streams.restore(state.part("streams"))

    def _begin(self) -> None:
        """Give the first chunk of every stream its base."""
        for stream, slot in enumerate(self.streams.open.tolist()):
            self.streams.filling.begin(stream, self.chunks.bases.open(stream, slot))

    def _close(self, stream: int) -> None:
        """Store the chunk that a stream has completed, and let it begin another one."""
        streams, bases = self.streams, self.chunks.bases
        if streams.free_slots <= 2 * streams.streams and not self._is_gathering:
            self._gather()
        slot, filling = streams.open.item(stream), streams.filling
        if streams.sizes.item(slot) < streams.chunk:
            return  # what was gathered has closed it already
        if streams.users.item(slot) > 1:  # by observations that are still there, not only by being open
            self._store(slot, stream)
        bases.learn(stream, filling.tail[stream], filling.first_nbytes.item(stream))
        filling.begin(stream, bases.open(stream, streams.advance(stream)))
        if self.chunks.evicted != self._evicted:
            self._note_evictions()

    def _store(self, slot: int, stream: int) -> None:
        streams = self.streams
        size = streams.sizes.item(slot)
        try:
            self.chunks.put(slot, streams.filling.parts(stream, size), size * streams.geometry.frame_nbytes)
        except HeapFullError as error:
            # It will never fit: dropped, as what is oldest is, so that others can follow.
            if error.capacity and not self.chunks.refuses:
                self._lose(np.array([slot]))
                self.dropped += 1
                streams.filling.begin(stream, self.chunks.bases.open(stream, streams.advance(stream)))
                # That is true of the chunk, which is gone; what was to be written goes into another one.
                raise replace(error, never_fits=False) from error
            raise

    def _note_evictions(self) -> None:
        """Find out what was lost since the last time, and keep new observations from referring to it."""
        evicted = self.chunks.evicted
        if evicted == self._evicted:
            return
        self._evicted, streams = evicted, self.streams
        used = np.flatnonzero(streams.users)
        used = used[~np.isin(used, streams.open)]
        self._lose(used[~self.chunks.holds(used)])

    def _lose(self, slots: Indices) -> None:
        """Mark what reaches into these chunks as lost."""
        if not len(slots):
            return
        streams = self.streams
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
        streams = self.streams
        while (free := streams.free_slots) <= 2 * streams.streams:
            references = streams.reaching(self._sparse_chunks())
            if self._lost is not None:
                references = references[~self._lost[references]]  # these cannot be read
            rows = np.empty((len(references), self.row_nbytes), np.uint8)
            self.kernels.read(streams, self.chunks, references, rows)
            self._is_gathering = True
            try:
                self.write_both(references, rows)
            finally:
                self._is_gathering = False
            if streams.free_slots <= free:
                found = f"all {streams.slots} chunks hold something that is needed"
                hint = "Observations are overwritten in too wild an order for frames: use layout='cells'."
                raise HeapStateError("FrameStore", "store another chunk", found, hint)

    def _sparse_chunks(self) -> NDArray[np.bool_]:
        """For each slot, whether its chunk has few users; so few in all that their frames fit into what is free."""
        streams = self.streams
        own = np.arange(len(streams.newest) - streams.streams, len(streams.newest))
        used = np.setdiff1d(np.flatnonzero(streams.users), [*streams.open, *streams.reached(own)])
        used = used[self.chunks.holds(used)]
        used = used[np.argsort(streams.users[used], kind="stable")]
        frames = np.cumsum(streams.users[used]) * streams.geometry.depth
        found = np.zeros(streams.slots, np.bool_)
        found[used[: max(1, int((frames <= streams.streams * streams.chunk).sum()))]] = True
        return found

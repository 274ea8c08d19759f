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
        self._is_gathering = False
        self._lost: NDArray[np.bool_] | None = None
        self._evicted = 0
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
        if self.chunks.is_bounded:
            self._note_evictions()  # other stores share the heap: evicted chunks must not be referred to
        if self._lost is not None:
            self._unmark(self._lost, references, next_obs)
        write, streams = self.kernels.write, self.streams
        done, count = 0, len(obs) if next_obs is None else 2 * len(obs)
        while (done := write(streams, references, obs, done, next_obs)) < count:
            plane, index = divmod(done, len(obs))
            self._close((int(references[index]) + plane * self.cells) % streams.streams)
        if self._lost is not None and not self._is_gathering:
            self._write_again(references, obs, next_obs)

    def _unmark(self, lost: NDArray[np.bool_], references: Indices, following: Bytes | None) -> None:
        """Cells that are written are no longer lost."""
        lost[references] = False
        if following is not None:
            lost[references + self.cells] = False

    def _write_again(self, references: Indices, rows: Bytes, following: Bytes | None) -> None:
        """Write again what a chunk of the same call has evicted. Once: the heap may be too small."""
        assert self._lost is not None
        if following is not None:
            references, rows = np.concatenate([references, references + self.cells]), np.concatenate([rows, following])
        lost = self._lost[references]
        if lost.any():
            self._is_gathering = True
            try:
                self.write(references[lost], rows[lost])
            finally:
                self._is_gathering = False

    def read(self, cells: Indices, out: Bytes | None, next_out: Bytes | None = None, /) -> None:
        references = np.ascontiguousarray(cells)
        if out is None:
            if next_out is None:
                return
            references, out, next_out = references + self.cells, next_out, None
        if self._lost is not None:
            both = references if next_out is None else np.concatenate([references, references + self.cells])
            self.refuse_lost(both)
        self.kernels.read(self.streams, self.chunks, references, out, next_out)

    def refuse_lost(self, references: Indices) -> None:
        """Raise if frames of these observations were dropped."""
        # A slot may still have the payload of a chunk that was there before the one that was lost.
        if self._lost is not None and self._lost[references].any():
            found = "a chunk of its frames was evicted to make room, or did not fit"
            raise HeapStateError("FrameStore", "read", found, "Give the heap a larger capacity.")

    def stored_nbytes(self) -> int:
        streams = self.streams
        used = np.flatnonzero(streams.users[: int(streams.numbers[2])])
        return self.chunks.stored_nbytes(used) + streams.filling.packed_nbytes

    def lost(self) -> NDArray[np.bool_] | None:
        self._note_evictions()
        return self._lost

    def holds(self, cells: Indices, /) -> NDArray[np.bool_]:
        lost = self.lost()
        if lost is None:
            return np.ones(len(cells), np.bool_)
        held: NDArray[np.bool_] = ~np.logical_or.reduce(lost.reshape(self.streams.planes, -1)[:, cells])
        return held

    def clear(self) -> None:
        self.chunks.clear()
        reference_frames = self.chunks.reference_frames
        self.streams.clear([reference_frames.open(stream, stream) for stream in range(self.streams.streams)])
        self._lost, self._evicted, self.dropped = None, 0, 0

    def state(self) -> State:
        found = State({"evicted": self._evicted, "dropped": self.dropped, "has_lost": self._lost is not None})
        if self._lost is not None:
            found.arrays["lost"] = self._lost
        return found.put("streams", self.streams.state()).put("chunks", self.chunks.state())

    def restore(self, state: State, /) -> None:
        self._evicted, self.dropped = (state.number(name, 0, 1 << 62) for name in ("evicted", "dropped"))
        if state.fact("has_lost", bool):
            self._lost = state.array("lost", np.bool_, self.streams.planes * self.streams.cells).copy()
        self.chunks.restore(state.part("chunks"))
        self.streams.restore(state.part("streams"))

    def _close(self, stream: int) -> None:
        """Store the complete chunk of a stream, and begin another one."""
        streams = self.streams
        if streams.free_slots <= 2 * streams.streams and not self._is_gathering:
            self._gather()
        slot, filling = streams.open.item(stream), streams.filling
        if streams.sizes.item(slot) < streams.chunk:
            return  # gathering has closed it already
        if streams.users.item(slot) > 1:  # used by observations, not only open
            self._store(slot, stream)
        self.chunks.reference_frames.learn(stream, filling.tail[stream], filling.first_nbytes.item(stream))
        self._begin_chunk(stream)
        if self.chunks.is_bounded:
            self._note_evictions()

    def _begin_chunk(self, stream: int) -> None:
        # An interrupt comes before or after begin_chunk(): a retry stores the same chunk again, or goes on in the next.
        reference_frame = self.chunks.reference_frames.open(stream, self.streams.next_slot)
        self.streams.begin_chunk(stream, reference_frame)

    def _store(self, slot: int, stream: int) -> None:
        streams = self.streams
        size = streams.sizes.item(slot)
        try:
            self.chunks.put(slot, streams.filling.parts(stream, size), size * streams.geometry.frame_nbytes)
        except HeapFullError as error:
            # It will never fit: dropped like the oldest chunks, so that others can follow.
            if error.capacity and not self.chunks.refuses:
                self._lose(np.array([slot]))
                self.dropped += 1
                self._begin_chunk(stream)
                # True of the chunk, which is gone; the observation that is being written goes into another one.
                raise replace(error, never_fits=False) from error
            raise

    def _note_evictions(self) -> None:
        """Find out which observations were lost since the last time, and keep new ones from referring to them."""
        evicted = self.chunks.evicted
        if evicted == self._evicted:
            return
        used = np.flatnonzero(self.streams.users)
        used = used[~np.isin(used, self.streams.open)]
        self._lose(used[~self.chunks.holds(used)])
        self._evicted = evicted

    def _lose(self, slots: Indices) -> None:
        """Mark observations that reach into these chunks as lost."""
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

        Such chunks exist only if observations are overwritten in another order than they were written.
        """
        streams = self.streams
        while (free := streams.free_slots) <= 2 * streams.streams:
            references = streams.reaching(self._sparse_chunks())
            if self._lost is not None:
                references = references[~self._lost[references]]  # cannot be read
            rows = np.empty((len(references), self.row_nbytes), np.uint8)
            self.kernels.read(streams, self.chunks, references, rows)
            self._is_gathering = True
            try:
                self.write(references, rows)
            finally:
                self._is_gathering = False
            if streams.free_slots <= free:
                found = f"all {streams.slots} chunks hold something that is needed"
                hint = "Observations are overwritten in too wild an order for frames: use layout='cells'."
                raise HeapStateError("FrameStore", "store another chunk", found, hint)

    def _sparse_chunks(self) -> NDArray[np.bool_]:
        """For each slot, whether its chunk has few users; so few in all that their frames fit into the free slots."""
        streams = self.streams
        own = np.arange(len(streams.newest) - streams.streams, len(streams.newest))
        used = np.setdiff1d(np.flatnonzero(streams.users), [*streams.open, *streams.reached(own)])
        used = used[self.chunks.holds(used)]
        used = used[np.argsort(streams.users[used], kind="stable")]
        frames = np.cumsum(streams.users[used]) * streams.geometry.depth
        found = np.zeros(streams.slots, np.bool_)
        found[used[: max(1, int((frames <= streams.streams * streams.chunk).sum()))]] = True
        return found

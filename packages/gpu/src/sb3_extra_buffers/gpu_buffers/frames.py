"""``DeviceFrames``: observations as stacks of frames, decoded on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th

from sb3_extra_buffers.frames.lookup import Lookup, find_frames
from sb3_extra_buffers.gpu_buffers.devices import ALIGNMENT, has_kernels
from sb3_extra_buffers.gpu_buffers.kernels import frame_reference
from sb3_extra_buffers.gpu_buffers.kernels.frame_reference import Needs
from sb3_extra_buffers.gpu_buffers.kernels.launch import Status
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores import FrameStore


class DeviceFrames:
    """Decodes chunks of frames where they are.

    The host knows which frames an observation is made of, and tells the device. Chunks that are being filled, or that
    are compressed, are uploaded for the batch.

    :param heap: holds the chunks
    """

    def __init__(self, heap: DevicePayloads) -> None:
        self._heap = heap
        self._status = Status("frames", heap.device) if has_kernels(heap.device) else None
        #: Reference frames on the device, and the frames that they are copies of.
        self._reference_frames: dict[tuple[int, int], tuple[Bytes, th.Tensor]] = {}

    def read(self, store: FrameStore, references: Indices) -> th.Tensor:
        """Observations as rows of bytes.

        :param store: holds them
        :param references: their numbers; next observations are numbered on behind observations
        """
        store.refuse_lost(references)
        out = th.zeros((len(references), store.row_nbytes), dtype=th.uint8, device=self._heap.device)
        found = find_frames(store.streams, references)
        if len(found.slots):
            self._decode(store, found, out)
        return out

    def _decode(self, store: FrameStore, found: Lookup, out: th.Tensor) -> None:
        geometry = store.streams.geometry
        # Chunk by chunk, and the frames of each in the order in which patches make them.
        order = np.lexsort((found.offsets, found.which))
        begin = np.searchsorted(found.which[order], np.arange(len(found.slots) + 1))
        rows, frames = np.divmod(found.targets[order], geometry.depth)
        targets = rows * store.row_nbytes + frames * geometry.group
        needs = [begin.astype(np.int32), found.offsets[order].astype(np.int32), targets]
        sizes, bases = store.streams.sizes[found.slots], self._on_device(store, found.slots)
        shape = {
            "frame_nbytes": geometry.frame_nbytes,
            "group": geometry.group,
            "stride": geometry.depth * geometry.group,
        }
        chunks = _Chunks(store, found.slots, self._heap)
        if self._status is None:
            on_host = Needs(*map(th.from_numpy, needs))
            frame_reference.decode(chunks.slices(), sizes.tolist(), bases, on_host, out.view(-1), **shape)
            return
        from sb3_extra_buffers.gpu_buffers.kernels import frame_decode

        heap, addresses = self._heap, np.stack([chunks.addresses(), chunks.lengths])
        places = heap.uploaded(addresses)
        on_device = Needs(*map(heap.uploaded, needs))
        scratch = th.empty((len(found.slots), geometry.frame_nbytes), dtype=th.uint8, device=heap.device)
        base_places = heap.uploaded(np.array([base.data_ptr() for base in bases]))
        wide = geometry.frame_nbytes % ALIGNMENT == 0 and geometry.pixels == 1
        with self._status.watching(chunks.lengths) as status:
            frame_decode.decode(
                places[0],
                places[1],
                heap.uploaded(sizes),
                base_places,
                on_device,
                scratch,
                out.view(-1),
                status,
                alignment=ALIGNMENT if wide else 1,
                **shape,
            )

    def _on_device(self, store: FrameStore, slots: Indices) -> list[th.Tensor]:
        """The reference frame of each chunk, on the device. They are few, and used for long."""
        reference_frames = store.chunks.reference_frames
        numbers: list[int] = reference_frames.of_slot[slots].tolist()
        found = []
        for number, frame in zip(numbers, reference_frames.of(slots.tolist())):
            key = id(store), number  # several keys of an observation share a heap
            known = self._reference_frames.get(key)
            if known is None or known[0] is not frame:
                known = self._reference_frames[key] = frame, self._heap.uploaded(frame)
            found.append(known[1])
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return DeviceFrames, (self._heap,)


class _Chunks:
    """The bytes of chunks, wherever they are.

    :param store: whose they are
    :param slots: which
    :param heap: where those are that are complete and went through no codec
    """

    def __init__(self, store: FrameStore, slots: Indices, heap: DevicePayloads) -> None:
        streams, self._heap, self._slots = store.streams, heap, slots
        stream_of = dict(zip(streams.open.tolist(), range(streams.streams)))
        is_open = np.isin(slots, streams.open)
        self._in_heap = ~is_open & store.chunks.are_plain(slots)
        self.starts, self.lengths = np.zeros(len(slots), np.int64), np.zeros(len(slots), np.int64)
        self.starts[self._in_heap], self.lengths[self._in_heap] = store.chunks.locate(slots[self._in_heap])
        others = np.flatnonzero(~self._in_heap)
        packed: dict[int, Bytes] = {}
        for index in np.flatnonzero(is_open).tolist():
            slot = int(slots[index])
            packed[index] = streams.filling.packed(stream_of[slot], int(streams.sizes[slot]))
        compressed = np.flatnonzero(~is_open & ~self._in_heap).tolist()
        packed.update(zip(compressed, store.chunks.load(slots[compressed].tolist()).packed))
        self.lengths[others] = [len(packed[index]) for index in others.tolist()]
        spaced = -(-self.lengths[others] // ALIGNMENT) * ALIGNMENT
        self._begins = dict(zip(others.tolist(), (np.cumsum(spaced) - spaced).tolist()))
        brought = np.zeros(int(spaced.sum()), np.uint8)
        for index, begin in self._begins.items():
            brought[begin : begin + len(packed[index])] = packed[index]
        self._brought = heap.uploaded(brought)

    def slices(self) -> list[th.Tensor]:
        """As tensors."""
        held = iter(self._heap.slices(self.starts[self._in_heap], self.lengths[self._in_heap]))
        return [
            next(held) if index not in self._begins else self._brought[(begin := self._begins[index]) : begin + length]
            for index, length in enumerate(self.lengths.tolist())
        ]

    def addresses(self) -> Indices:
        """As the device sees them, while this object lives."""
        found = np.zeros(len(self._slots), np.int64)
        held = self._in_heap
        found[held] = self._heap.device_addresses(self.starts[held], self.lengths[held]).view(np.int64)
        for index, begin in self._begins.items():
            found[index] = self._brought.data_ptr() + begin
        return found

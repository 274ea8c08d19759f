"""``DeviceFrames``: observations as stacks of frames, decoded on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray

from sb3_extra_buffers.frames.numpy_kernels import Lookup, find_frames
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
        :param references: their numbers; those of next observations follow those of observations
        """
        shape = len(references), store.row_nbytes
        found = find_frames(store.streams, references)
        if not len(found.slots):
            return th.zeros(shape, dtype=th.uint8, device=self._heap.device)
        if self._status is None:
            out = th.zeros(shape, dtype=th.uint8, device=self._heap.device)
            self._decode_in_torch(store, found, out)
            return out
        return self._decode_in_kernels(store, found, len(references))

    def _decode_in_torch(self, store: FrameStore, found: Lookup, out: th.Tensor) -> None:
        geometry = store.streams.geometry
        needs = _needs(found, geometry.depth, store.row_nbytes, geometry.group)
        frame_reference.decode(
            _Chunks(store, found.slots, self._heap).slices(),
            store.streams.sizes[found.slots].tolist(),
            self._on_device(store, found.slots),
            Needs(*map(th.from_numpy, needs)),
            out.view(-1),
            frame_nbytes=geometry.frame_nbytes,
            group=geometry.group,
            stride=geometry.depth * geometry.group,
        )

    def _decode_in_kernels(self, store: FrameStore, found: Lookup, rows: int) -> th.Tensor:
        from sb3_extra_buffers.gpu_buffers.kernels import frame_decode

        heap, geometry = self._heap, store.streams.geometry
        nbytes, depth, group = geometry.frame_nbytes, geometry.depth, geometry.group
        # Frames whose pixels alternate are decoded one after the other, with wide stores, and interleaved afterwards.
        apart = frame_decode.can_interleave(nbytes, depth, group)
        if apart:
            group = nbytes
        bases = self._on_device(store, found.slots)
        chunks = _Chunks(store, found.slots, heap)
        numbers = [
            chunks.lengths,
            np.array([base.data_ptr() for base in bases]),
            store.streams.sizes[found.slots],
            *_needs(found, depth, store.row_nbytes, group),
        ]
        addresses, lengths, base_places, sizes, *needs = chunks.upload(numbers)
        out = th.zeros((rows, store.row_nbytes), dtype=th.uint8, device=heap.device)
        scratch = th.empty((len(found.slots), nbytes), dtype=th.uint8, device=heap.device)
        is_wide = nbytes % ALIGNMENT == 0 and group == nbytes
        assert self._status is not None
        with self._status.watching(chunks.lengths) as status:
            frame_decode.decode(
                addresses,
                lengths,
                sizes,
                base_places,
                Needs(*needs),
                scratch,
                out.view(-1),
                status,
                frame_nbytes=nbytes,
                group=group,
                stride=depth * group,
                alignment=ALIGNMENT if is_wide else 1,
            )
        return frame_decode.interleave(out, depth) if apart else out

    def _on_device(self, store: FrameStore, slots: Indices) -> list[th.Tensor]:
        """The reference frame of each chunk, on the device. They are few, and used for long."""
        reference_frames = store.chunks.reference_frames
        numbers: list[int] = reference_frames.of_slot[slots].tolist()
        found = []
        for number, frame in zip(numbers, reference_frames.of(slots.tolist())):
            key = id(store), number  # several keys of an observation share a heap
            known = self._reference_frames.get(key)
            if known is None or known[0] is not frame:
                self._heap.order.write()  # other streams read it from now on
                known = self._reference_frames[key] = frame, self._heap.uploaded(frame)
                self._heap.order.own(known[1])
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
        self._brought = np.zeros(int(spaced.sum()), np.uint8)
        for index, begin in self._begins.items():
            self._brought[begin : begin + len(packed[index])] = packed[index]

    def slices(self) -> list[th.Tensor]:
        """As tensors."""
        held = iter(self._heap.slices(self.starts[self._in_heap], self.lengths[self._in_heap]))
        brought = self._heap.uploaded(self._brought)
        return [
            next(held) if index not in self._begins else brought[(begin := self._begins[index]) : begin + length]
            for index, length in enumerate(self.lengths.tolist())
        ]

    def upload(self, numbers: list[NDArray[Any]]) -> list[th.Tensor]:
        """Addresses of the chunks for kernels, valid while the tensors live, and other arrays; all in one transfer."""
        found = np.zeros(len(self._slots), np.int64)
        held = self._in_heap
        found[held] = self._heap.device_addresses(self.starts[held], self.lengths[held]).view(np.int64)

        def locate(brought: int) -> None:
            for index, begin in self._begins.items():
                found[index] = brought + begin

        _, *tensors = self._heap.uploaded_together(self._brought, found, *numbers, locate=locate)
        return tensors


def _needs(found: Lookup, depth: int, row_nbytes: int, group: int) -> list[NDArray[Any]]:
    """The arrays of :class:`Needs`: chunk by chunk, and the frames of each in the order in which patches make them."""
    order = np.lexsort((found.offsets, found.which))
    begin = np.searchsorted(found.which[order], np.arange(len(found.slots) + 1))
    rows, frames = np.divmod(found.targets[order], depth)
    targets = rows * row_nbytes + frames * group
    return [begin.astype(np.int32), found.offsets[order].astype(np.int32), targets]

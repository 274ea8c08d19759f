"""``DeviceReader``: from stores on a device heap to tensors on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import torch as th
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import Codec, decode_batch
from sb3_extra_buffers.frames.batch_memory import BatchMemory
from sb3_extra_buffers.gpu_buffers import devices
from sb3_extra_buffers.gpu_buffers.codecs import DeviceCodec, decoder_for
from sb3_extra_buffers.gpu_buffers.codecs.lookup import AUTO, HOST
from sb3_extra_buffers.gpu_buffers.frames import DeviceFrames
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores import FrameStore, LocatedStore, ObservationStore, Origins, join_origins

#: A store, cells of it, and whether their next observations are meant.
Wanted = tuple[ObservationStore, Indices, bool]


class DeviceReader:
    """Reads cells of several stores into the rows of one tensor: in one launch where codecs have kernels, by way of the
    host otherwise.

    :param heap: where payloads are; ``None`` if there are none
    :param device: device of the tensors
    :param decode_on: ``"auto"``, ``"device"`` or ``"host"``
    :param threads: threads of the host used to decode a batch; ``None``: chosen automatically
    """

    def __init__(
        self, heap: DevicePayloads | None, device: th.device, decode_on: str, threads: int | None = None
    ) -> None:
        self._heap = heap
        self._device = device
        #: Where payloads are decoded.
        self.decode_on = decode_on
        self._threads = threads
        self._batches = BatchMemory()
        self._decoders: dict[Any, DeviceCodec | None] = {}
        self._frames: DeviceFrames | None = None

    @property
    def device(self) -> th.device:
        """Where tensors are: where payloads are."""
        return self._device if self._heap is None else self._heap.device

    def uploaded(self, array: NDArray[Any]) -> th.Tensor:
        """An array on the device, without waiting until it is there."""
        if self._heap is None:
            return th.from_numpy(array).to(self.device)
        return self._heap.uploaded(np.ascontiguousarray(array))

    def take(self, batch: th.Tensor) -> th.Tensor:
        """A batch that a worker has read, for the current stream, which may be another one."""
        return batch if self._heap is None else self._heap.order.take(batch)

    def move(self, device: th.device) -> None:
        """Read on another device from now on; the heap is there already."""
        self._device = device
        self._decoders.clear()
        self._frames = None

    def read(self, wanted: Sequence[Wanted], *, as_float: bool = False) -> th.Tensor:
        """All rows, one store after the other, as bytes.

        :param wanted: which cells of which stores; their rows have the same size
        :param as_float: that bytes may come as ``float32``, which costs nothing where a kernel writes them
        """
        frames = self._frames_on_device(wanted)
        if frames is not None:
            return frames
        origins = self._located(wanted)
        if origins is None or origins.codec is None:
            return self._read_from_stores(wanted)
        decoder, row_nbytes = self.decoder(origins.codec), wanted[0][0].row_nbytes
        if decoder is not None:
            return self._read_on_device(origins, decoder, row_nbytes, as_float)
        if devices.is_host(self.device):
            return self._read_from_stores(wanted)  # payloads are read where they are
        return self._read_by_host(origins, row_nbytes)

    def _frames_on_device(self, wanted: Sequence[Wanted]) -> th.Tensor | None:
        """Observations that are stacks of frames, if the device puts them together.

        Plain torch must wait for the device several times, since the number of patched bytes is known there only. The
        host waits once, for all chunks. So it decodes frames where there are no kernels, unless asked otherwise.
        """
        stays_on_host = self.decode_on == HOST or (self.decode_on == AUTO and not devices.has_kernels(self.device))
        if self._heap is None or stays_on_host:
            return None
        references, stores = [], []
        for store, cells, is_next in wanted:
            active = store.active
            if not isinstance(active, FrameStore):
                return None  # cells, or it is not yet known how frames are stacked
            stores.append(active)
            references.append(cells + active.cells if is_next else cells)
        if self._frames is None:
            self._frames = DeviceFrames(self._heap)
        return self._frames.read(stores[0], np.concatenate(references))

    def _located(self, wanted: Sequence[Wanted]) -> Origins | None:
        """Where all payloads are, if the stores can tell."""
        actives = [store.active for store, _, _ in wanted]
        if self._heap is None or not all(isinstance(store, LocatedStore) for store in actives):
            return None
        parts = zip(cast("list[LocatedStore]", actives), wanted)
        return join_origins([store.origins(cells, is_next) for store, (_, cells, is_next) in parts])

    def decoder(self, codec: Codec) -> DeviceCodec | None:
        """The device codec for payloads of a codec; ``None`` if the host decodes them."""
        key = codec.spec, codec.cell
        if key not in self._decoders:
            self._decoders[key] = decoder_for(codec, self.device, self.decode_on)
        return self._decoders[key]

    def _read_on_device(self, origins: Origins, decoder: DeviceCodec, row_nbytes: int, as_float: bool) -> th.Tensor:
        heap, present, starts, lengths = self._payloads(origins)
        dtype = th.float32 if as_float else th.uint8
        out = th.empty((len(origins.cells), row_nbytes), dtype=dtype, device=self.device)
        if len(present) == len(out):
            decoder.decode(heap, starts, lengths, out)
            return out
        out.zero_()  # cells without a payload are zero
        if len(present):
            found = out[: len(present)].clone()
            decoder.decode(heap, starts, lengths, found)
            out[heap.uploaded(present)] = found
        for rows, content in origins.in_memory:
            out[heap.uploaded(rows)] = heap.uploaded(content).to(dtype)
        return out

    def _read_by_host(self, origins: Origins, row_nbytes: int) -> th.Tensor:
        """By way of the host: all payloads come in one copy, and all rows go in one."""
        heap, present, starts, lengths = self._payloads(origins)
        out = self._batches.empty((len(origins.cells), row_nbytes), np.dtype(np.uint8))
        source, places = heap.bring(starts, lengths)
        is_complete = len(present) == len(out)
        found = out if is_complete else np.empty((len(present), row_nbytes), np.uint8)
        decode_batch(origins.codec, source, places, lengths, found, threads=self._threads)
        if not is_complete:
            out[:] = 0  # cells without a payload are zero
            out[present] = found
            for rows, content in origins.in_memory:
                out[rows] = content
        return th.from_numpy(out).to(self.device)

    def _payloads(self, origins: Origins) -> tuple[DevicePayloads, Indices, Indices, Indices]:
        """The heap, which rows have a payload there, where these are, and how long."""
        heap = self._heap
        assert heap is not None
        present = np.flatnonzero(origins.cells >= 0)
        starts, lengths = heap.locate(origins.cells[present])
        written = starts >= 0
        return heap, present[written], starts[written], lengths[written]

    def _read_from_stores(self, wanted: Sequence[Wanted]) -> th.Tensor:
        count, row_nbytes = sum(len(cells) for _, cells, _ in wanted), wanted[0][0].row_nbytes
        out = self._batches.empty((count, row_nbytes), np.dtype(np.uint8))
        _read_rows(wanted, out)
        # One copy; on the CPU none.
        return th.from_numpy(out).to(self.device)

    def __reduce__(self) -> tuple[Any, ...]:
        return DeviceReader, (self._heap, self.device, self.decode_on, self._threads)


def _read_rows(wanted: Sequence[Wanted], out: Bytes) -> None:
    store, cells, _ = wanted[0]
    if len(wanted) == 2 and wanted[1][0] is store and wanted[1][1] is cells:
        store.read(cells, out[: len(cells)], out[len(cells) :])  # frames that both have are decoded once
        return
    begin = 0
    for store, cells, is_next in wanted:
        rows = out[begin : begin + len(cells)]
        store.read(cells, *((None, rows) if is_next else (rows, None)))
        begin += len(cells)

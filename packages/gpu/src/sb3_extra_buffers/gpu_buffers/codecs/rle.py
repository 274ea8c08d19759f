"""``rle`` on a device: Triton on CUDA and ROCm, plain torch elsewhere. The bytes are those of core's ``rle``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.errors import DeviceError
from sb3_extra_buffers.gpu_buffers.codecs.plugin import DeviceCodecPlugin
from sb3_extra_buffers.gpu_buffers.codecs.status import Status
from sb3_extra_buffers.gpu_buffers.devices import ALIGNMENT, has_kernels
from sb3_extra_buffers.gpu_buffers.kernels.elements import ITEM_SIZES
from sb3_extra_buffers.gpu_buffers.kernels.rle_decode import reference as torch_decoding
from sb3_extra_buffers.gpu_buffers.kernels.rle_encode import reference as torch_encoding
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.memory import Indices
from sb3_extra_buffers.registry import hookimpl


class RleOnDevice:
    """Runs of equal elements, decoded and encoded on a device.

    :param codec: what payloads are made with on the host
    :param device: where payloads are
    """

    name = "rle"

    def __init__(self, codec: Codec, device: th.device) -> None:
        self._count, self._item = codec.cell.count, codec.cell.dtype.itemsize
        if self._item not in ITEM_SIZES:
            problem = (
                f"{self.name} decodes elements of {', '.join(map(str, ITEM_SIZES))} bytes there, not of {self._item}"
            )
            raise DeviceError(str(device), problem, "Use decode_on='host'.")
        self._has_kernels = has_kernels(device)
        self._status = Status(self.name, device) if self._has_kernels else None

    def decode(self, heap: DevicePayloads, starts: Indices, lengths: Indices, out: th.Tensor, /) -> None:
        scale = 1.0 if out.dtype == th.float32 else None
        if self._status is None:
            torch_decoding.decode(heap.slices(starts, lengths), out, count=self._count, item=self._item, scale=scale)
            return
        from sb3_extra_buffers.gpu_buffers.kernels.rle_decode import launch

        addresses = heap.device_addresses(starts, lengths)
        places = heap.uploaded(np.stack([addresses.view(np.int64), lengths]))
        with self._status.watching(lengths) as status:
            launch.decode(places[0], places[1], out, status, count=self._count, item=self._item, scale=scale)

    def encode(self, rows: th.Tensor, /) -> tuple[th.Tensor, list[int]]:
        encoding: Any = torch_encoding
        if self._has_kernels:
            from sb3_extra_buffers.gpu_buffers.kernels.rle_encode import launch as encoding
        measured = encoding.measure(rows, item=self._item)
        lengths: list[int] = measured.lengths.tolist()  # the host decides where they go, so it has to know
        sizes = np.array([-(-length // ALIGNMENT) * ALIGNMENT for length in lengths])
        out = th.zeros(int(sizes.sum()), dtype=th.uint8, device=rows.device)
        offsets = th.from_numpy(np.cumsum(sizes) - sizes).to(rows.device)
        encoding.write(rows, measured, offsets, out, item=self._item)
        return out, lengths


@hookimpl
def sb3_extra_buffers_device_codec() -> DeviceCodecPlugin:
    return DeviceCodecPlugin(protocol=1, factory=RleOnDevice, summary="Run-length encoding in Triton or torch")

"""``none`` on a device: copies uncompressed cells."""

from __future__ import annotations

import numpy as np
import torch as th

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.gpu_buffers.codecs.protocol import DeviceCodecPlugin
from sb3_extra_buffers.gpu_buffers.devices import aligned, has_kernels
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.memory import Indices
from sb3_extra_buffers.registry import hookimpl


class NoneOnDevice:
    """Copies payloads, which are the cells.

    :param codec: the host codec of the payloads
    :param device: the device of the payloads
    """

    def __init__(self, codec: Codec, device: th.device) -> None:
        self._nbytes = codec.cell.nbytes
        self._has_kernels = has_kernels(device)

    def decode(self, heap: DevicePayloads, starts: Indices, lengths: Indices, out: th.Tensor, /) -> None:
        wrong = lengths != self._nbytes
        if wrong.any():
            index = int(wrong.argmax())
            raise PayloadError("none", int(lengths[index]), f"a cell has {self._nbytes} bytes", index)
        if self._has_kernels:
            from sb3_extra_buffers.gpu_buffers.kernels import cell_copy

            addresses = heap.uploaded(heap.device_addresses(starts, lengths).view(np.int64))
            cell_copy.copy(addresses, out, nbytes=self._nbytes)
            return
        rows = out if out.dtype == th.uint8 else th.empty(out.shape, dtype=th.uint8, device=out.device)
        heap.copy_rows(starts, self._nbytes, rows)
        if rows is not out:
            out.copy_(rows)

    def encode(self, rows: th.Tensor, /) -> tuple[th.Tensor, list[int]]:
        out = th.zeros((len(rows), aligned(self._nbytes)), dtype=th.uint8, device=rows.device)
        out[:, : self._nbytes] = rows
        return out.view(-1), [self._nbytes] * len(rows)


@hookimpl
def sb3_extra_buffers_device_codec() -> DeviceCodecPlugin:
    return DeviceCodecPlugin(protocol=1, factory=NoneOnDevice, summary="Uncompressed cells")

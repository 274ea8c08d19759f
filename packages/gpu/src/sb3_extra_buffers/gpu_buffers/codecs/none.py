"""``none`` on a device: cells as they are."""

from __future__ import annotations

import torch as th

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.gpu_buffers.codecs.plugin import DeviceCodecPlugin
from sb3_extra_buffers.gpu_buffers.devices import ALIGNMENT
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.memory import Indices
from sb3_extra_buffers.registry import hookimpl


class NoneOnDevice:
    """Copies.

    :param codec: what payloads are made with on the host
    :param device: where payloads are
    """

    def __init__(self, codec: Codec, device: th.device) -> None:
        self._nbytes = codec.cell.nbytes
        self._device = device

    def decode(self, heap: DevicePayloads, starts: Indices, lengths: Indices, out: th.Tensor, /) -> None:
        wrong = lengths != self._nbytes
        if wrong.any():
            index = int(wrong.argmax())
            raise PayloadError("none", int(lengths[index]), f"a cell has {self._nbytes} bytes", index)
        slices = heap.slices(starts, lengths)
        if out.dtype == th.uint8:
            th.cat(slices, out=out.view(-1))
        else:
            out.view(-1).copy_(th.cat(slices))

    def encode(self, rows: th.Tensor, /) -> tuple[th.Tensor, list[int]]:
        size = -(-self._nbytes // ALIGNMENT) * ALIGNMENT
        out = th.zeros((len(rows), size), dtype=th.uint8, device=rows.device)
        out[:, : self._nbytes] = rows
        return out.view(-1), [self._nbytes] * len(rows)


@hookimpl
def sb3_extra_buffers_device_codec() -> DeviceCodecPlugin:
    return DeviceCodecPlugin(protocol=1, factory=NoneOnDevice, summary="Cells as they are")

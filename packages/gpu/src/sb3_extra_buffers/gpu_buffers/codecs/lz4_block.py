"""``lz4-block`` on NVIDIA devices, through nvCOMP."""

from __future__ import annotations

import torch as th

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.gpu_buffers.codecs.nvcomp import NvcompCodec, nvcomp_codec
from sb3_extra_buffers.gpu_buffers.codecs.plugin import DeviceCodecPlugin
from sb3_extra_buffers.registry import hookimpl


def _create(codec: Codec, device: th.device) -> NvcompCodec:
    return nvcomp_codec(codec, device, "LZ4")


@hookimpl
def sb3_extra_buffers_device_codec() -> DeviceCodecPlugin:
    return DeviceCodecPlugin(protocol=1, factory=_create, summary="LZ4 through nvCOMP")

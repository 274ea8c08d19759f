"""``rle-jit`` on a device: the payloads of ``rle`` by another name."""

from __future__ import annotations

from sb3_extra_buffers.gpu_buffers.codecs.plugin import DeviceCodecPlugin
from sb3_extra_buffers.gpu_buffers.codecs.rle import RleOnDevice
from sb3_extra_buffers.registry import hookimpl


class RleJitOnDevice(RleOnDevice):
    """What numba encoded on the host is decoded on the device."""

    name = "rle-jit"


@hookimpl
def sb3_extra_buffers_device_codec() -> DeviceCodecPlugin:
    return DeviceCodecPlugin(protocol=1, factory=RleJitOnDevice, summary="What numba encoded, in Triton or torch")

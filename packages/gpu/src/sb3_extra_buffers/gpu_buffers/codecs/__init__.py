"""Codecs that decode payloads on the device: the contract, our device codecs, and the lookup by name.

Codecs without one work as well: their payloads are decoded on the host.
"""

from sb3_extra_buffers.gpu_buffers.codecs.lookup import (
    AUTO,
    DECODE_ON,
    DEVICE,
    check_decode_on,
    decoder_for,
    names,
    registry,
)
from sb3_extra_buffers.gpu_buffers.codecs.protocol import DEVICE_CODEC_PROTOCOL, DeviceCodec, DeviceCodecPlugin
from sb3_extra_buffers.registry import hookimpl

__all__ = [
    "AUTO",
    "DECODE_ON",
    "DEVICE",
    "DEVICE_CODEC_PROTOCOL",
    "DeviceCodec",
    "DeviceCodecPlugin",
    "check_decode_on",
    "decoder_for",
    "hookimpl",
    "names",
    "registry",
]

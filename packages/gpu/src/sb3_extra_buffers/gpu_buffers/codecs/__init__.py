"""Codecs whose payloads are decoded where they are: the contract, those that come along, the way from a name to one.

Every other codec works too, by way of the host.
"""

from sb3_extra_buffers.gpu_buffers.codecs.creation import (
    AUTO,
    DECODE_ON,
    DEVICE,
    check_decode_on,
    decoder_for,
    names,
    registry,
)
from sb3_extra_buffers.gpu_buffers.codecs.plugin import DEVICE_CODEC_PROTOCOL, DeviceCodecPlugin
from sb3_extra_buffers.gpu_buffers.codecs.protocol import DeviceCodec
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

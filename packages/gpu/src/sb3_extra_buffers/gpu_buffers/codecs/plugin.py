"""What a distribution hands over when the name of its device codec is used for the first time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch as th

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.gpu_buffers.codecs.protocol import DeviceCodec
from sb3_extra_buffers.registry import hookspec

#: The version of the contract that this package speaks.
DEVICE_CODEC_PROTOCOL = 1


@dataclass(frozen=True)
class DeviceCodecPlugin:
    """A device codec as its distribution describes it.

    :param protocol: the contract that it was written against, as a literal number (today: 1)
    :param factory: called as ``factory(codec, device)`` with the codec of the host, whose payloads it is for; raises
        ``DeviceError`` if it cannot work there
    :param summary: one line for listings
    """

    protocol: int
    factory: Callable[[Codec, th.device], DeviceCodec]
    summary: str


class DeviceCodecHooks:
    """The hook of a device codec plugin."""

    @hookspec(historic=True)
    def sb3_extra_buffers_device_codec(self) -> DeviceCodecPlugin:  # type: ignore[empty-body]
        """Return the device codec that this module offers. One module, one codec, one entry point."""

"""Finds the device codec for the payloads of a buffer."""

from __future__ import annotations

import logging

import torch as th

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.errors import DeviceError, MissingExtraError, ParameterError, PluginError
from sb3_extra_buffers.gpu_buffers import devices
from sb3_extra_buffers.gpu_buffers.codecs.protocol import (
    DEVICE_CODEC_PROTOCOL,
    DeviceCodec,
    DeviceCodecPlugin,
)
from sb3_extra_buffers.registry import PluginKind, Registry

logger = logging.getLogger("sb3_extra_buffers")

AUTO, DEVICE, HOST = "auto", "device", "host"
#: The values of ``decode_on``.
DECODE_ON = (AUTO, DEVICE, HOST)

registry: Registry[DeviceCodecPlugin] = Registry(
    PluginKind(
        label="device codec",
        group="sb3_extra_buffers.device_codecs",
        hook="sb3_extra_buffers_device_codec",
        plugin_type=DeviceCodecPlugin,
        protocol=DEVICE_CODEC_PROTOCOL,
        homes={},
        distribution="sb3-extra-buffers-gpu",
    )
)


def names() -> tuple[str, ...]:
    """The names of all device codecs, sorted. Reads metadata; imports no plugin."""
    return registry.names()


def check_decode_on(owner: str, decode_on: str) -> None:
    """Refuse an invalid ``decode_on``.

    :param owner: the caller, for the error
    :param decode_on: the value to check
    """
    if decode_on not in DECODE_ON:
        raise ParameterError(owner, "decode_on", decode_on, f"it must be one of: {', '.join(DECODE_ON)}")


def decoder_for(codec: Codec, device: th.device, decode_on: str = AUTO) -> DeviceCodec | None:
    """The device codec for the payloads of a codec; ``None`` if the host decodes them.

    :param codec: the host codec of the payloads
    :param device: the device of the payloads
    :param decode_on: ``"device"`` raises ``DeviceError`` if the codec has no path there; ``"auto"`` then uses the host,
        which is also the fastest for payloads on the CPU
    """
    check_decode_on("buffer", decode_on)
    if decode_on == HOST or (decode_on == AUTO and devices.is_host(device)):
        return None
    name = codec.spec.name
    if name not in names():
        if decode_on == DEVICE:
            hint = f"Codecs with one: {', '.join(names())} (lz4-block and zstd with nvCOMP). "
            hint += "decode_on='auto' decodes the others on the host."
            raise DeviceError(str(device), f"the codec {name!r} has no path on a device", hint)
        return None
    try:
        return registry.load(name).factory(codec, device)
    except (DeviceError, MissingExtraError, PluginError) as error:
        if decode_on == DEVICE:
            raise
        level = logging.WARNING if isinstance(error, PluginError) else logging.INFO
        logger.log(level, "%s is decoded on the host instead of on %s. %s", name, device, error)
        return None

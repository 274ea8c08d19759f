"""The contract of device codecs: the protocol, the plugin, and its hook."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch as th

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.memory import Indices
from sb3_extra_buffers.registry import hookimpl

#: The version of the contract that this package implements.
DEVICE_CODEC_PROTOCOL = 1


@runtime_checkable
class DeviceCodec(Protocol):
    """A codec that is bound to a cell and to a device. Both methods are required; nothing else is asked of it.

    Payloads are those of the codec of the same name on the host, byte for byte: either reads what the other wrote. The
    heap gives access to them: ``heap.slices`` as tensors, ``heap.device_addresses`` as addresses for kernels, and
    ``heap.uploaded`` copies arrays to the device.

    :class:`sb3_extra_buffers.gpu_buffers.testing.DeviceCodecConformance` tests every rule of this contract.
    """

    def decode(self, heap: DevicePayloads, starts: Indices, lengths: Indices, out: th.Tensor, /) -> None:
        """Decode ``n`` payloads, at least one, into the rows of ``out``, without waiting for the device.

        It writes every row of ``out``, and nothing else, however damaged a payload is.

        :param heap: the heap of the payloads, which stay as they are
        :param starts: their positions in the heap; a position may occur several times
        :param lengths: their sizes in bytes
        :param out: ``uint8``, shape ``(n, cell.nbytes)``, contiguous, on the device of the heap. For cells of ``uint8``
            it may be ``float32`` of shape ``(n, cell.count)``, which receives the elements as floats
        :raise PayloadError: if a payload is damaged, with its index; at a later call if this one does not wait for the
            device
        """

    def encode(self, rows: th.Tensor, /) -> tuple[th.Tensor, list[int]]:
        """Encode cells that are on the device.

        :param rows: ``uint8``, shape ``(n, cell.nbytes)``, contiguous; they stay as they are
        :return: the payloads in one ``uint8`` tensor on the device of the rows, each at a multiple of 16 bytes, and
            their sizes
        """


@dataclass(frozen=True)
class DeviceCodecPlugin:
    """A device codec as its distribution describes it.

    :param protocol: the contract that it was written against, as a literal number (today: 1)
    :param factory: called as ``factory(codec, device)`` with the host codec that encodes the payloads; raises
        ``DeviceError`` or ``MissingExtraError`` if it cannot decode them on this device
    :param summary: one line for listings
    """

    protocol: int
    factory: Callable[[Codec, th.device], DeviceCodec]
    summary: str


@dataclass(frozen=True, eq=False)
class PluginHook:
    """Implements the hook for an entry point that names an object, where one module has several device codecs.

    :param plugin: the device codec
    """

    plugin: DeviceCodecPlugin

    @hookimpl
    def sb3_extra_buffers_device_codec(self) -> DeviceCodecPlugin:
        return self.plugin

"""The contract of codecs on a device: the same payloads as on the host, decoded without it."""

from __future__ import annotations

from typing import Protocol

import torch as th

from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.memory import Indices


class DeviceCodec(Protocol):
    """A codec that is bound to a cell and to a device.

    Payloads are those of the codec of the same name on the host, byte for byte: either reads what the other wrote.
    """

    def decode(self, heap: DevicePayloads, starts: Indices, lengths: Indices, out: th.Tensor, /) -> None:
        """Decode ``n`` payloads into the rows of ``out``, without waiting for the device.

        :param heap: where the payloads are
        :param starts: their positions there
        :param lengths: their sizes in bytes
        :param out: ``uint8``, shape ``(n, cell.nbytes)``, contiguous, on the device of the heap; ``float32`` of shape
            ``(n, cell.count)`` receives the elements as floats, for cells of ``uint8``
        :raise PayloadError: if a payload is damaged; where nobody waits for the device, at a later call
        """

    def encode(self, rows: th.Tensor, /) -> tuple[th.Tensor, list[int]]:
        """Encode cells that are on the device.

        :param rows: ``uint8``, shape ``(n, cell.nbytes)``, contiguous
        :return: the payloads, each at a multiple of 16 bytes, and their sizes
        """

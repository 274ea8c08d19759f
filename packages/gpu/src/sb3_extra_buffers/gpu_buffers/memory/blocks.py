"""``TensorBlock``: a block of a heap that is a tensor."""

from __future__ import annotations

from sb3_extra_buffers.errors import DeviceError, HeapFullError
from sb3_extra_buffers.gpu_buffers import devices
from sb3_extra_buffers.gpu_buffers.memory.upload import Uploader
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer
from sb3_extra_buffers.heaps.block import Block

#: Slices of larger tensors have been wrong there.
_MAX_ON_MPS = (1 << 32) - 1


class TensorBlock(Block):
    """Bytes on a device. On the CPU, the host sees them as they are.

    :param label: the heap's name, for the error
    :param nbytes: how much
    :param uploader: how bytes get there
    """

    def __init__(self, label: str, nbytes: int, uploader: Uploader) -> None:
        if uploader.device.type == "mps" and nbytes > _MAX_ON_MPS:
            raise DeviceError("mps", "a block of 4 GiB or more cannot be trusted there", "Use a smaller heap_bytes.")
        try:
            self.raw = RawBuffer(nbytes, uploader.device)
        except HeapFullError as error:
            hint = f"{uploader.device} refused the memory; use a smaller buffer or another codec."
            raise HeapFullError(label, nbytes, 0, hint) from error
        self.tensor = self.raw.bytes
        self._uploader = uploader
        if devices.is_host(self.tensor.device):
            super().__init__(self.tensor.numpy())
        else:
            self.nbytes, self.address = self.tensor.numel(), self.tensor.data_ptr()

    def view(self, place: int, length: int) -> memoryview:
        if devices.is_host(self.tensor.device):
            return super().view(place, length)
        return memoryview(devices.on_host(self.tensor[place : place + length]).numpy())

    def write(self, place: int, payloads: memoryview) -> None:
        if devices.is_host(self.tensor.device):
            super().write(place, payloads)
        else:
            self._uploader.upload(payloads, self.tensor[place : place + len(payloads)])

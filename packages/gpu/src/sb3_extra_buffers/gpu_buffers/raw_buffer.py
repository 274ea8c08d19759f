"""``RawBuffer``: untyped bytes on a torch device."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import torch as th

from sb3_extra_buffers.errors import DeviceError, HeapFullError, ParameterError
from sb3_extra_buffers.gpu_buffers.devices import as_device
from sb3_extra_buffers.gpu_buffers.size_estimation import torch_dtype_element_size


class RawBuffer:
    """A fixed number of bytes on a device, written and read as elements of any dtype.

    The bytes are one ``uint8`` tensor, and every access is a slice of it. Slices of an ``UntypedStorage`` are pointer
    arithmetic, which is wrong on MPS, where a pointer is a handle. The bytes are not initialised.

    :param size: number of bytes
    :param device: device of the bytes
    """

    def __init__(self, size: int, device: str | th.device = "cpu") -> None:
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 0:
            raise ParameterError("RawBuffer", "size", size, "it must be a number of bytes, at least 0")
        self._bytes = _allocate(int(size), device)
        self._next = 0

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self._bytes.numel()

    @property
    def device(self) -> th.device:
        """Device of the bytes."""
        return self._bytes.device

    @property
    def bytes(self) -> th.Tensor:
        """All bytes, as a live tensor of ``uint8``."""
        return self._bytes

    @property
    def buffer(self) -> th.UntypedStorage:
        """The storage of that tensor, as in the published package. Do not slice it: slice :attr:`bytes`."""
        return self._bytes.untyped_storage()

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"RawBuffer({self.size}, device={str(self.device)!r})"

    def malloc(self, length: int) -> tuple[int, int]:
        """Allocate a region after the previous one, or at the beginning if there is no room, over the oldest regions.

        :param length: number of bytes
        :return: start and length of the region, in bytes
        """
        if length < 0 or length > self.size:
            raise HeapFullError("RawBuffer", length, self.size, "Make a larger RawBuffer.")
        start = self._next if self._next + length <= self.size else 0
        self._next = start + length
        return start, length

    def write_bytes(self, malloc: tuple[int, int], tensor: th.Tensor) -> None:
        """Copy a tensor, from any device, to a region.

        :param malloc: start and length of the region **in elements** of the tensor's dtype, as in the published package
        :param tensor: exactly that many elements, in any shape
        """
        start, length = malloc
        if tensor.numel() != length:
            allowed = f"the region has room for {length} elements of {tensor.dtype}, {tensor.numel()} were given"
            raise ParameterError("RawBuffer.write_bytes", "malloc", tuple(malloc), allowed)
        write_at(self, start * tensor.dtype.itemsize, 0, tensor)

    def read_bytes(self, malloc: tuple[int, int], dtype: th.dtype) -> th.Tensor:
        """A region as a one-dimensional tensor, a live view.

        :param malloc: start and length of the region, **in elements** of ``dtype``
        :param dtype: dtype of the elements
        """
        start, length = malloc
        return read_at(self, start * torch_dtype_element_size(dtype), 0, length, dtype)

    def read_into(self, malloc: tuple[int, int], tensor: th.Tensor) -> None:
        """Copy a region to the first elements of a tensor on any device; the others keep their values.

        :param malloc: start and length of the region, **in elements** of the tensor's dtype
        :param tensor: at least that many elements, one-dimensional or contiguous
        """
        owner, (_, length) = "RawBuffer.read_into", malloc
        if tensor.dim() != 1 and not tensor.is_contiguous():
            # Any other tensor can be flattened only as a copy, which would receive the data instead.
            allowed = "it must be one-dimensional or contiguous"
            raise ParameterError(owner, "tensor", f"strides {tensor.stride()}", allowed, "Pass a contiguous tensor.")
        found = self.read_bytes(malloc, tensor.dtype)
        if tensor.numel() < length:
            allowed = f"the tensor has only {tensor.numel()} elements"
            raise ParameterError(owner, "malloc", tuple(malloc), allowed, "Pass a longer tensor or read less.")
        target = tensor.detach().view(-1)[:length]
        target.copy_(found.clone() if self._holds(tensor) else found)

    def copy_region(self, src_start: int, length: int, dst_start: int) -> None:
        """Copy bytes within the buffer. The regions may overlap.

        :param src_start: start of the source, in bytes
        :param length: number of bytes
        :param dst_start: start of the target, in bytes
        """
        source = self.region(src_start, length)
        target = self.region(dst_start, length)
        if src_start != dst_start:
            target.copy_(source.clone() if abs(src_start - dst_start) < length else source)

    def region(self, start: int, nbytes: int) -> th.Tensor:
        """A live view of some bytes, as ``uint8``.

        :param start: their start
        :param nbytes: their number
        """
        if start < 0 or nbytes < 0 or start + nbytes > self.size:
            allowed = f"the buffer has the bytes 0 to {self.size}"
            raise ParameterError("RawBuffer", "region", f"bytes {start} to {start + nbytes}", allowed)
        return self._bytes[start : start + nbytes]

    def to(self, device: str | th.device) -> RawBuffer:
        """The same bytes on another device; this buffer itself if they are there already.

        :param device: target device
        """
        target = as_device(device)
        if target == self.device:
            return self
        moved = RawBuffer(self.size, target)
        moved._bytes.copy_(self._bytes)
        moved._next = self._next
        return moved

    def __getstate__(self) -> dict[str, Any]:
        return {"device": str(self.device), "bytes": self._bytes.cpu().numpy(), "next": self._next}

    def __setstate__(self, state: dict[str, Any]) -> None:
        data: np.ndarray[Any, Any] = state["bytes"]
        loaded = th.from_numpy(data if data.flags.writeable else data.copy())
        try:
            target = as_device(state["device"])
        except DeviceError as error:
            # A buffer is loadable on a machine without its device.
            warnings.warn(f"{error} The bytes are on the CPU now.", stacklevel=2)
            target = th.device("cpu")
        self._bytes = loaded.to(target)
        self._next = state.get("next", 0)

    def __copy__(self) -> RawBuffer:
        # A shallow copy by __getstate__ would share its bytes on the CPU only.
        return copy.deepcopy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> RawBuffer:
        copied = RawBuffer.__new__(RawBuffer)
        copied._bytes, copied._next = self._bytes.clone(), self._next
        memo[id(self)] = copied
        return copied

    def _holds(self, tensor: th.Tensor) -> bool:
        """Whether a tensor is a view of these bytes."""
        storage = tensor.untyped_storage()
        return tensor.device == self.device and storage.data_ptr() == self.buffer.data_ptr()


def write_at(buffer: RawBuffer, byte_start: int, rel_byte_offset: int, tensor: th.Tensor) -> None:
    """Copy a tensor, from any device, to a byte position, which need not be aligned.

    :param buffer: the buffer to write to
    :param byte_start: start of the cell
    :param rel_byte_offset: offset in the cell
    :param tensor: the data, in any shape
    """
    data = tensor.detach().reshape(-1).contiguous().view(th.uint8)
    target = buffer.region(byte_start + rel_byte_offset, data.numel())
    # Torch refuses to copy between overlapping tensors, such as two regions of this buffer.
    target.copy_(data.clone() if buffer._holds(data) else data)


def read_at(buffer: RawBuffer, byte_start: int, rel_byte_offset: int, elem_count: int, dtype: th.dtype) -> th.Tensor:
    """Elements at a byte position, as a one-dimensional tensor.

    It is a live view if the position is a multiple of the element size, and a copy otherwise.

    :param buffer: the buffer to read from
    :param byte_start: start of the cell
    :param rel_byte_offset: offset in the cell
    :param elem_count: number of elements
    :param dtype: their dtype
    """
    start, itemsize = byte_start + rel_byte_offset, torch_dtype_element_size(dtype)
    found = buffer.region(start, elem_count * itemsize)
    return (found.clone() if start % itemsize else found).view(dtype)


def _allocate(size: int, device: str | th.device) -> th.Tensor:
    # The device is checked first, so a failure below is due to the size.
    found = as_device(device)
    if found.type == "meta":
        raise DeviceError(str(device), "it stores no data", "Use 'cpu', or a device with memory.")
    try:
        return th.empty(size, dtype=th.uint8, device=found)
    except RuntimeError as error:
        raise HeapFullError("RawBuffer", size, 0, f"Choose a smaller size or another device than {found}.") from error

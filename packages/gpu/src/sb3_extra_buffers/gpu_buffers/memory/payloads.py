"""The base of all heaps on a device: blocks of tensors, and the table of payloads."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import State, StateError
from sb3_extra_buffers.errors import DeviceError, HeapFullError
from sb3_extra_buffers.gpu_buffers import devices
from sb3_extra_buffers.gpu_buffers.devices import ALIGNMENT, aligned, as_device
from sb3_extra_buffers.gpu_buffers.memory.transfer import StreamOrder, Uploader
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer
from sb3_extra_buffers.heaps import TableHeap
from sb3_extra_buffers.heaps.block import Block
from sb3_extra_buffers.memory import NOTHING, Bytes, ByteSource, Columns, FlatBytes, Indices, untouched, view_bytes
from sb3_extra_buffers.registry import Scalar

#: Slices of larger tensors have been wrong on MPS.
_MAX_ON_MPS = (1 << 32) - 1
#: Types to copy with, the widest first.
_WORDS = (th.int64, th.int32, th.int16, th.uint8)
#: Bytes copied to the host at a time when all payloads are.
_MAX_GATHERED = 1 << 24


class TensorBlock(Block):
    """A block of a heap that is a tensor on a device. On the CPU, the host reads it directly.

    :param label: the name of the heap, for the error
    :param nbytes: size of the block
    :param uploader: copies bytes to the device
    :param order: orders the streams that use the block
    """

    def __init__(self, label: str, nbytes: int, uploader: Uploader, order: StreamOrder) -> None:
        if uploader.device.type == "mps" and nbytes > _MAX_ON_MPS:
            raise DeviceError("mps", "blocks of 4 GiB or more are unreliable there", "Use a smaller heap_bytes.")
        try:
            self.raw = RawBuffer(nbytes, uploader.device)
        except HeapFullError as error:
            hint = f"{uploader.device} does not have enough memory; use a smaller buffer or another codec."
            raise HeapFullError(label, nbytes, 0, hint) from error
        self.tensor = self.raw.bytes
        self._uploader, self._order = uploader, order
        order.own(self.tensor)
        if devices.is_host(self.tensor.device):
            super().__init__(self.tensor.numpy())
        else:
            self.nbytes, self.address = self.tensor.numel(), self.tensor.data_ptr()

    def view(self, place: int, length: int) -> memoryview:
        if devices.is_host(self.tensor.device):
            return super().view(place, length)
        self._order.read()
        return memoryview(devices.on_host(self.tensor[place : place + length]).numpy())

    def write(self, place: int, payloads: memoryview) -> None:
        if devices.is_host(self.tensor.device):
            super().write(place, payloads)
        else:
            self._order.write()
            self._uploader.upload(payloads, self.tensor[place : place + len(payloads)])


class DevicePayloads(TableHeap):
    """Base of the heaps on a device: payloads in blocks of tensors, each at a multiple of 16 bytes.

    The table of cells is on the host: the host allocates, and kernels on the device are given addresses. So nothing
    waits for the device, except reading on the host, for which the payloads of a batch are fetched in one copy.
    """

    #: The capability to store a payload in parts is absent: a copy to a device takes one piece.
    put: Any = None

    def __init__(self, cells: int, device: th.device | str | None, *room: Any) -> None:
        self.device = as_device(device)
        self._uploader = Uploader(self.device)
        #: Orders the streams that use payloads.
        self.order = StreamOrder(self.device)
        super().__init__(cells, *room)
        #: Size of each payload without its padding.
        self._exact = untouched(cells, np.int32)
        #: Number of times that all payloads were moved.
        self._relocations = 0
        self._brought: FlatBytes | None = None

    @property
    def moves(self) -> int | None:
        """Number of times that addresses became invalid; ``None`` if they are valid for one call only: off the CPU."""
        moves = super().moves
        return moves + self._relocations if moves is not None and devices.is_host(self.device) else None

    @property
    def live(self) -> int:
        return int(self._exact[np.flatnonzero(self._lengths)].sum())

    def locate(self, cells: Indices, /) -> tuple[Indices, Indices]:
        starts, lengths = super().locate(cells)
        return starts, np.where(lengths, self._exact[np.asarray(cells)], 0).astype(np.int64, copy=False)

    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]:
        """Addresses of payloads for the host, valid until the next call. Off the CPU, they are fetched first."""
        if devices.is_host(self.device):
            return super().addresses(starts, lengths)  # type: ignore[safe-super]
        self._brought, begins = self._copied(starts, lengths)
        return self._brought.addresses(begins, lengths)

    def bring(self, starts: Indices, lengths: Indices, /) -> tuple[ByteSource, Indices]:
        """Fetch payloads to the host in one copy; return the copy and their positions in it."""
        if devices.is_host(self.device):
            return self, starts
        return self._copied(starts, lengths)

    def _copied(self, starts: Indices, lengths: Indices) -> tuple[FlatBytes, Indices]:
        return FlatBytes(self.gather(starts, lengths)), np.cumsum(lengths) - lengths

    def device_addresses(self, starts: Indices, lengths: Indices) -> NDArray[np.uint64]:
        """Addresses of payloads for kernels on the device, which are launched in the current stream."""
        self.order.read()
        return super().addresses(starts, lengths)  # type: ignore[safe-super]

    def slices(self, starts: Indices, lengths: Indices) -> list[th.Tensor]:
        """Payloads as tensors, each a view of its block."""
        self.device_addresses(starts, lengths)  # raises for invalid positions
        numbers, offsets = self._places(starts)
        which = numbers.tolist()
        blocks = {number: self._block_of(number).tensor for number in set(which)}
        ends = (offsets + lengths).tolist()
        return [blocks[number][begin:end] for number, begin, end in zip(which, offsets.tolist(), ends)]

    def copy_rows(self, starts: Indices, nbytes: int, out: th.Tensor) -> None:
        """Copy payloads of equal size into the rows of a tensor; in one operation if they are in one block.

        :param starts: positions of the payloads
        :param nbytes: size of each
        :param out: ``uint8``, contiguous, one row per payload
        """
        lengths = np.full(len(starts), nbytes)
        numbers, offsets = self._places(starts)
        if (numbers != numbers[0]).any():
            th.cat(self.slices(starts, lengths), out=out.view(-1))
            return
        self.device_addresses(starts, lengths)  # raises for invalid positions
        word = next(word for word in _WORDS if nbytes % word.itemsize == 0)
        rows = out.view(-1).view(word).view(len(out), -1)
        block = self._block_of(int(numbers[0])).tensor.view(word)
        # A row for every position at which a payload may begin. Rows overlap, and only some are read.
        count = (len(block) - rows.shape[1]) * word.itemsize // ALIGNMENT + 1
        windows = block.as_strided((count, rows.shape[1]), (ALIGNMENT // word.itemsize, 1))
        th.index_select(windows, 0, self.uploaded(offsets // ALIGNMENT), out=rows)

    def uploaded(self, array: NDArray[Any]) -> th.Tensor:
        """Copy an array to the device, without waiting for the copy."""
        target = th.empty(array.shape, dtype=th.from_numpy(array).dtype, device=self.device)
        if array.size:  # an empty memoryview cannot be cast
            self._uploader.upload(memoryview(array).cast("B"), target.view(-1).view(th.uint8))
        return target

    def uploaded_together(self, *arrays: NDArray[Any], locate: Callable[[int], None] | None = None) -> list[th.Tensor]:
        """Copy arrays to the device in one transfer, without waiting for it; each begins at a multiple of 16 bytes.

        :param arrays: contiguous
        :param locate: called before the transfer with the address of the first one on the device; it may change the
            others
        """
        ends = np.cumsum([aligned(array.nbytes) for array in arrays]).tolist()
        target = th.empty(ends[-1], dtype=th.uint8, device=self.device)
        if locate is not None:
            locate(target.data_ptr())
        packed = np.zeros(ends[-1], np.uint8)
        for array, begin in zip(arrays, [0, *ends]):
            packed[begin : begin + array.nbytes] = array.reshape(-1).view(np.uint8)
        self._uploader.upload(memoryview(packed), target)
        return [
            target[begin : begin + array.nbytes].view(th.from_numpy(array).dtype).view(array.shape)
            for array, begin in zip(arrays, [0, *ends])
        ]

    @property
    def lengths(self) -> th.Tensor:
        """Size of each cell's payload; 0 for an empty cell."""
        return th.from_numpy(np.where(self._lengths, self._exact, 0).astype(np.int64))

    @property
    @abstractmethod
    def data_end(self) -> int:
        """Bytes in use for payloads and the holes between them."""

    def compact(self) -> None:
        """Pack all payloads, oldest first. Useful only if writes left holes. Needs memory for a second copy."""
        self.to(self.device)

    def to(self, device: th.device | str) -> None:
        """Move all payloads to another device. If it has not enough memory, nothing is moved."""
        parameters: dict[str, Any] = {**self._parameters(), "device": as_device(device)}
        there = type(self)(self.cells, **parameters)
        there._begin_logs_after(self)
        there._resume(self._snapshot())
        there._relocations = self._relocations + 1
        self.__dict__.update(there.__dict__)

    def gather(self, starts: Indices, lengths: Indices) -> Bytes:
        """Copy payloads to the host, contiguous, in one transfer."""
        if not len(starts):
            return np.empty(0, np.uint8)
        found: Bytes = devices.on_host(th.cat(self.slices(starts, lengths))).numpy()
        return found

    @abstractmethod
    def _begin_logs_after(self, other: Any) -> None:
        """Use logs of other names than another heap: in a checkpoint, equal names mean equal bytes."""

    @abstractmethod
    def _places(self, starts: Indices) -> tuple[Indices, Indices]:
        """The number of the block of each payload, and the offset in it."""

    @abstractmethod
    def _block_of(self, number: int) -> TensorBlock:
        """A block by its number."""

    def _new_block(self, nbytes: int) -> TensorBlock:
        return TensorBlock(self.label, aligned(nbytes), self._uploader, self.order)

    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int], also: Columns = NOTHING) -> None:
        sizes = [aligned(length) for length in lengths]
        # The exact sizes are published together with the payloads.
        targets, keys, values = ([*part] for part in also)
        also = targets + [self._exact] * len(cells), keys + cells, values + lengths
        super()._store(cells, _padded(payloads, lengths, sizes), sizes, also)  # type: ignore[safe-super,call-arg]

    def _index_nbytes(self) -> int:
        return super()._index_nbytes() + 4 * int(np.count_nonzero(self._lengths))

    def _table_state(self) -> State:
        found = super()._table_state()
        lengths = found.arrays["lengths"]
        found.arrays["exact"] = np.where(lengths, self._exact[: len(lengths)], 0).astype(np.int32)
        return found

    def restore(self, state: State) -> None:
        super().restore(state)
        state.begin_of(exact=self._exact)
        if (self._exact < 0).any() or (self._exact > self._lengths).any():
            raise StateError("payloads are longer than their allocated size")

    def _parameters(self) -> dict[str, Scalar]:
        return {**super()._parameters(), "device": str(self.device)}  # type: ignore[safe-super]

    def _join(self, starts: Indices, lengths: Indices) -> bytes:
        # In parts: a device that is nearly full has no memory to join them all at once.
        part = (np.cumsum(lengths) - 1) // _MAX_GATHERED
        edges = np.flatnonzero(np.diff(part, prepend=-1)).tolist()
        bounds = zip(edges, [*edges[1:], len(starts)])
        return b"".join([self.gather(starts[begin:end], lengths[begin:end]).tobytes() for begin, end in bounds])

    def __reduce__(self) -> tuple[Any, ...]:
        return restore_heap, (type(self), self.cells, self._parameters(), self._snapshot())


def _padded(payloads: memoryview, lengths: list[int], sizes: list[int]) -> memoryview:
    """Pad payloads to the given sizes."""
    if lengths == sizes:
        return payloads
    padded, begin, end = np.zeros(sum(sizes), np.uint8), 0, 0
    source = np.frombuffer(payloads, np.uint8)
    for length, size in zip(lengths, sizes):
        padded[end : end + length] = source[begin : begin + length]
        begin += length
        end += size
    return view_bytes("device heap", "payloads", padded)


def restore_heap(kind: type[DevicePayloads], cells: int, parameters: dict[str, Any], snapshot: dict[str, Any]) -> Any:
    """Create a pickled heap again; on the CPU if its device is missing."""
    try:
        as_device(parameters["device"])
    except DeviceError as error:
        # A heap that was saved on a device is readable on a machine without it.
        warnings.warn(f"{error} What was stored there is kept on the CPU.", stacklevel=2)
        parameters = {**parameters, "device": "cpu"}
    heap = kind(cells, **parameters)
    heap._resume(snapshot)
    return heap


restore_heap.__module__ = __package__  # pickles name the package, so files may move

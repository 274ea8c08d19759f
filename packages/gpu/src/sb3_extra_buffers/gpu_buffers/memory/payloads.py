"""What all heaps on a device share: uploads, blocks of tensors, and the table of payloads."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import State, StateError
from sb3_extra_buffers.errors import DeviceError, HeapFullError
from sb3_extra_buffers.gpu_buffers import devices
from sb3_extra_buffers.gpu_buffers.devices import aligned, as_device
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer
from sb3_extra_buffers.heaps import TableHeap
from sb3_extra_buffers.heaps.block import Block
from sb3_extra_buffers.memory import Bytes, ByteSource, FlatBytes, Indices, untouched, view_bytes
from sb3_extra_buffers.registry import Scalar

#: Copies that may be pending. The staging memory of a copy is reused only when the copy is complete.
_SLOTS = 32
#: Longer uploads are split, so that loading a buffer does not need its size again as staging memory.
_MAX_NBYTES = 1 << 20
_MIN_NBYTES = 1 << 16
#: Slices of larger tensors have been wrong on MPS.
_MAX_ON_MPS = (1 << 32) - 1
#: Bytes copied to the host at a time when all payloads are.
_MAX_GATHERED = 1 << 24


class Uploader:
    """Copies bytes to a device, on CUDA without waiting for it.

    An asynchronous copy needs pinned memory that does not change until the copy is complete. Pinning memory takes
    longer than the copy, so a few pinned buffers are used in turn.

    :param device: the target device
    """

    def __init__(self, device: th.device) -> None:
        self.device = device
        self._is_pinned = device.type == "cuda"
        self._slots: list[tuple[th.Tensor, Any]] = []
        self._next = 0

    def upload(self, data: Any, target: th.Tensor) -> None:
        """Copy bytes to a tensor of the same size.

        :param data: an object with the buffer protocol
        :param target: ``uint8``, on the device
        """
        view = memoryview(data)
        for begin in range(0, len(view), _MAX_NBYTES):
            piece = view[begin : begin + _MAX_NBYTES]
            # A copy of read-only memory: torch warns about it, although this only reads.
            source = th.frombuffer(bytearray(piece) if piece.readonly else piece, dtype=th.uint8)
            self._copy(source, target[begin : begin + len(piece)])

    def _copy(self, source: th.Tensor, target: th.Tensor) -> None:
        if not self._is_pinned:
            target.copy_(source)
            return
        staging, event = self._slot(len(source))
        event.synchronize()
        staged = staging[: len(source)]
        staged.copy_(source)
        target.copy_(staged, non_blocking=True)
        event.record(th.cuda.current_stream(self.device))

    def _slot(self, nbytes: int) -> tuple[th.Tensor, Any]:
        index, self._next = self._next, (self._next + 1) % _SLOTS
        if index == len(self._slots):
            self._slots.append(self._make(nbytes))
        elif len(self._slots[index][0]) < nbytes:
            self._slots[index][1].synchronize()
            self._slots[index] = self._make(nbytes)
        return self._slots[index]

    @staticmethod
    def _make(nbytes: int) -> tuple[th.Tensor, Any]:
        size = max(_MIN_NBYTES, 1 << (nbytes - 1).bit_length())
        event: Any = th.cuda.Event  # has no types
        return th.empty(size, dtype=th.uint8, pin_memory=True), event()

    def __reduce__(self) -> tuple[Any, ...]:
        return Uploader, (self.device,)


class TensorBlock(Block):
    """A block of a heap that is a tensor on a device. On the CPU, the host reads it directly.

    :param label: the name of the heap, for the error
    :param nbytes: size of the block
    :param uploader: copies bytes to the device
    """

    def __init__(self, label: str, nbytes: int, uploader: Uploader) -> None:
        if uploader.device.type == "mps" and nbytes > _MAX_ON_MPS:
            raise DeviceError("mps", "blocks of 4 GiB or more are unreliable there", "Use a smaller heap_bytes.")
        try:
            self.raw = RawBuffer(nbytes, uploader.device)
        except HeapFullError as error:
            hint = f"{uploader.device} does not have enough memory; use a smaller buffer or another codec."
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
        """Addresses of payloads for kernels on the device."""
        return super().addresses(starts, lengths)  # type: ignore[safe-super]

    def slices(self, starts: Indices, lengths: Indices) -> list[th.Tensor]:
        """Payloads as tensors, each a view of its block."""
        self.device_addresses(starts, lengths)  # raises for invalid positions
        return [self._tensor(start, length) for start, length in zip(starts.tolist(), lengths.tolist())]

    def uploaded(self, array: NDArray[Any]) -> th.Tensor:
        """Copy an array to the device, without waiting for the copy."""
        target = th.empty(array.shape, dtype=th.from_numpy(array).dtype, device=self.device)
        if array.size:  # an empty memoryview cannot be cast
            self._uploader.upload(memoryview(array).cast("B"), target.view(-1).view(th.uint8))
        return target

    def to(self, device: th.device | str) -> None:
        """Move all payloads to another device. If it has not enough memory, nothing is moved."""
        parameters: dict[str, Any] = {**self._parameters(), "device": as_device(device)}
        there = type(self)(self.cells, **parameters)
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
    def _tensor(self, start: int, length: int) -> th.Tensor:
        """A payload as a view of its block; the position is valid."""

    def _new_block(self, nbytes: int) -> TensorBlock:
        return TensorBlock(self.label, aligned(nbytes), self._uploader)

    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int]) -> None:
        sizes = [aligned(length) for length in lengths]
        super()._store(cells, _padded(payloads, lengths, sizes), sizes)  # type: ignore[safe-super]
        for cell, length in zip(cells, lengths):
            self._exact[cell] = length

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

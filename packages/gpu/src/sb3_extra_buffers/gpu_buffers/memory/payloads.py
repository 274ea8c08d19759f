"""``DevicePayloads``: what heaps on a device have in common, wherever their blocks come from."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import State, StateError
from sb3_extra_buffers.errors import DeviceError
from sb3_extra_buffers.gpu_buffers import devices
from sb3_extra_buffers.gpu_buffers.devices import ALIGNMENT, as_device
from sb3_extra_buffers.gpu_buffers.memory.blocks import TensorBlock
from sb3_extra_buffers.gpu_buffers.memory.upload import Uploader
from sb3_extra_buffers.heaps import TableHeap
from sb3_extra_buffers.memory import Bytes, ByteSource, FlatBytes, Indices, untouched, view_bytes
from sb3_extra_buffers.registry import Scalar

#: How much is brought to the host at a time when everything is.
_MAX_GATHERED = 1 << 24


class DevicePayloads(TableHeap):
    """Payloads in blocks of tensors, each at a multiple of 16 bytes.

    The table of cells is on the host: it decides where a payload goes, and who reads on the device is told addresses.
    So nothing ever waits for the device, except whoever reads through the host. For that, what a batch needs is brought
    there in one copy.
    """

    #: One payload in pieces has no shorter way to a device.
    put: Any = None

    def __init__(self, cells: int, device: th.device | str | None, *room: Any) -> None:
        self.device = as_device(device)
        self._uploader = Uploader(self.device)
        super().__init__(cells, *room)
        #: The size of each payload without what follows it up to the next multiple.
        self._exact = untouched(cells, np.int32)
        #: How often everything was moved.
        self._relocations = 0
        self._brought: FlatBytes | None = None

    @property
    def moves(self) -> int | None:
        """Addresses on the host are worth remembering only where payloads are on the host."""
        moves = super().moves
        return moves + self._relocations if moves is not None and devices.is_host(self.device) else None

    @property
    def live(self) -> int:
        return int(self._exact[np.flatnonzero(self._lengths)].sum())

    def locate(self, cells: Indices, /) -> tuple[Indices, Indices]:
        starts, lengths = super().locate(cells)
        return starts, np.where(lengths, self._exact[np.asarray(cells)], 0).astype(np.int64, copy=False)

    def addresses(self, starts: Indices, lengths: Indices, /) -> NDArray[np.uint64]:
        """Where the host can read these payloads, until the next call."""
        if devices.is_host(self.device):
            return super().addresses(starts, lengths)  # type: ignore[safe-super]
        self._brought, begins = self._copied(starts, lengths)
        return self._brought.addresses(begins, lengths)

    def bring(self, starts: Indices, lengths: Indices, /) -> tuple[ByteSource, Indices]:
        """These payloads where the host can read them, in one copy; and where they are there."""
        if devices.is_host(self.device):
            return self, starts
        return self._copied(starts, lengths)

    def _copied(self, starts: Indices, lengths: Indices) -> tuple[FlatBytes, Indices]:
        return FlatBytes(self.gather(starts, lengths)), np.cumsum(lengths) - lengths

    def device_addresses(self, starts: Indices, lengths: Indices) -> NDArray[np.uint64]:
        """Where kernels on the device can read these payloads."""
        return super().addresses(starts, lengths)  # type: ignore[safe-super]

    def slices(self, starts: Indices, lengths: Indices) -> list[th.Tensor]:
        """These payloads as tensors, each a view of its block."""
        self.device_addresses(starts, lengths)  # refuses what is not there
        return [self._tensor(start, length) for start, length in zip(starts.tolist(), lengths.tolist())]

    def uploaded(self, array: NDArray[Any]) -> th.Tensor:
        """An array on the device, without waiting until it is there."""
        target = th.empty(array.shape, dtype=th.from_numpy(array).dtype, device=self.device)
        if array.size:  # a view of nothing cannot be cast
            self._uploader.upload(memoryview(array).cast("B"), target.view(-1).view(th.uint8))
        return target

    def to(self, device: th.device | str) -> None:
        """Move everything to another device. If there is no room for it, everything stays where it is."""
        parameters: dict[str, Any] = {**self._parameters(), "device": as_device(device)}
        there = type(self)(self.cells, **parameters)
        there._resume(self._snapshot())
        there._relocations = self._relocations + 1
        self.__dict__.update(there.__dict__)

    def gather(self, starts: Indices, lengths: Indices) -> Bytes:
        """These payloads on the host, one behind the other, in one copy."""
        if not len(starts):
            return np.empty(0, np.uint8)
        found: Bytes = devices.on_host(th.cat(self.slices(starts, lengths))).numpy()
        return found

    @abstractmethod
    def _tensor(self, start: int, length: int) -> th.Tensor:
        """A payload that is known to be there."""

    def _new_block(self, nbytes: int) -> TensorBlock:
        return TensorBlock(self.label, -(-nbytes // ALIGNMENT) * ALIGNMENT, self._uploader)

    def _store(self, cells: list[int], payloads: memoryview, lengths: list[int]) -> None:
        sizes = [-(-length // ALIGNMENT) * ALIGNMENT for length in lengths]
        super()._store(cells, _spaced(payloads, lengths, sizes), sizes)  # type: ignore[safe-super]
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
            raise StateError("payloads are longer than the room for them")

    def _parameters(self) -> dict[str, Scalar]:
        return {**super()._parameters(), "device": str(self.device)}  # type: ignore[safe-super]

    def _join(self, starts: Indices, lengths: Indices) -> bytes:
        # In parts: on a device that is nearly full, there is no room for all of it in one piece.
        part = (np.cumsum(lengths) - 1) // _MAX_GATHERED
        edges = np.flatnonzero(np.diff(part, prepend=-1)).tolist()
        bounds = zip(edges, [*edges[1:], len(starts)])
        return b"".join([self.gather(starts[begin:end], lengths[begin:end]).tobytes() for begin, end in bounds])

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.cells, self._parameters(), self._snapshot())


def _spaced(payloads: memoryview, lengths: list[int], sizes: list[int]) -> memoryview:
    """Payloads at multiples of 16 bytes."""
    if lengths == sizes:
        return payloads
    spaced, begin, end = np.zeros(sum(sizes), np.uint8), 0, 0
    source = np.frombuffer(payloads, np.uint8)
    for length, size in zip(lengths, sizes):
        spaced[end : end + length] = source[begin : begin + length]
        begin += length
        end += size
    return view_bytes("device heap", "payloads", spaced)


def _restored(kind: type[DevicePayloads], cells: int, parameters: dict[str, Any], snapshot: dict[str, Any]) -> Any:
    try:
        as_device(parameters["device"])
    except DeviceError as error:
        # What was saved on a machine with a device shall be readable on one without.
        warnings.warn(f"{error} What was stored there is kept on the CPU.", stacklevel=2)
        parameters = {**parameters, "device": "cpu"}
    heap = kind(cells, **parameters)
    heap._resume(snapshot)
    return heap

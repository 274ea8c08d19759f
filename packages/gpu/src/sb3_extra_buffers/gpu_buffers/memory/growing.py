"""``device``: a heap on a device that grows with its payloads."""

from __future__ import annotations

import torch as th

from sb3_extra_buffers.gpu_buffers.memory.payloads import DevicePayloads, TensorBlock
from sb3_extra_buffers.heaps import HeapPlugin, hookimpl
from sb3_extra_buffers.heaps.memory import MemoryHeap, place_of
from sb3_extra_buffers.memory import Bytes, Indices


class GrowingDeviceHeap(DevicePayloads, MemoryHeap):
    """Payloads in segments on a device. Cells that are replaced in the order of writing free whole segments.

    :param cells: number of cells
    :param device: device of the payloads
    """

    label = "device"

    def __init__(self, cells: int, device: th.device | str = "auto") -> None:
        super().__init__(cells, device)

    @property
    def data_end(self) -> int:
        """Bytes in use in all segments, holes included. After ``compact()``, those of the payloads."""
        return int(self._limits.sum())

    def _allocate(self, nbytes: int) -> TensorBlock:
        return self._new_block(nbytes)

    def _saved(self, content: Bytes) -> TensorBlock:
        block = self._new_block(len(content))
        block.write(0, memoryview(content))
        return block

    def _begin_logs_after(self, other: GrowingDeviceHeap) -> None:
        self._logs = other._logs
        self.clear()

    def _places(self, starts: Indices) -> tuple[Indices, Indices]:
        return place_of(starts)  # type: ignore[arg-type, return-value]  # it computes with arrays, too

    def _block_of(self, number: int) -> TensorBlock:
        block = self._segments[number].block
        assert isinstance(block, TensorBlock)
        return block


GrowingDeviceHeap.__module__ = __package__  # pickles name the package, so files may move


@hookimpl
def sb3_extra_buffers_heap() -> HeapPlugin:
    return HeapPlugin(
        protocol=1,
        factory=GrowingDeviceHeap,
        summary="Memory of a torch device that grows with what is stored",
        parameters={"device": "auto"},
        grows=True,
    )

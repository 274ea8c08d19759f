"""Heaps whose payloads are on a torch device."""

from sb3_extra_buffers.gpu_buffers.memory.growing import GrowingDeviceHeap
from sb3_extra_buffers.gpu_buffers.memory.payloads import DevicePayloads, restore_heap
from sb3_extra_buffers.gpu_buffers.memory.ring import SharedRawHeap

__all__ = ["DevicePayloads", "GrowingDeviceHeap", "SharedRawHeap", "restore_heap"]

"""Where bytes live: the heap contract, the built-in heaps, and the way from a name to a heap."""

from sb3_extra_buffers.heaps.creation import create, names, registry
from sb3_extra_buffers.heaps.plugin import HEAP_PROTOCOL, HeapPlugin
from sb3_extra_buffers.heaps.protocol import Evictions, Heap
from sb3_extra_buffers.heaps.reach import RemoteHeap, within_reach
from sb3_extra_buffers.heaps.table import TableHeap
from sb3_extra_buffers.registry import hookimpl

__all__ = [
    "HEAP_PROTOCOL",
    "Evictions",
    "Heap",
    "HeapPlugin",
    "RemoteHeap",
    "TableHeap",
    "create",
    "hookimpl",
    "names",
    "registry",
    "within_reach",
]

"""Where bytes live: the heap contract, the built-in heaps, and the way from a name to a heap."""

from sb3_extra_buffers.heaps.creation import create, names, registry
from sb3_extra_buffers.heaps.plugin import HEAP_PROTOCOL, HeapPlugin
from sb3_extra_buffers.heaps.protocol import (
    DirectHeap,
    Evictions,
    FileHeap,
    Heap,
    MovingHeap,
    RemoteHeap,
    SizedHeap,
    StatefulHeap,
    StrictHeap,
    within_reach,
)
from sb3_extra_buffers.heaps.table import TableHeap
from sb3_extra_buffers.registry import hookimpl

__all__ = [
    "HEAP_PROTOCOL",
    "DirectHeap",
    "Evictions",
    "FileHeap",
    "Heap",
    "HeapPlugin",
    "MovingHeap",
    "RemoteHeap",
    "SizedHeap",
    "StatefulHeap",
    "StrictHeap",
    "TableHeap",
    "create",
    "hookimpl",
    "names",
    "registry",
    "within_reach",
]

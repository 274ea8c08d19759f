"""Heaps store payloads: the contract, its optional capabilities, the built-in heaps, and the registry."""

from sb3_extra_buffers.heaps.plugin import HEAP_PROTOCOL, HeapPlugin, create, names, registry
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
from sb3_extra_buffers.heaps.state import Log, Piece, State, StateError
from sb3_extra_buffers.heaps.table import TableHeap
from sb3_extra_buffers.registry import hookimpl

__all__ = [
    "HEAP_PROTOCOL",
    "DirectHeap",
    "Evictions",
    "FileHeap",
    "Heap",
    "HeapPlugin",
    "Log",
    "MovingHeap",
    "Piece",
    "RemoteHeap",
    "SizedHeap",
    "State",
    "StateError",
    "StatefulHeap",
    "StrictHeap",
    "TableHeap",
    "create",
    "hookimpl",
    "names",
    "registry",
    "within_reach",
]

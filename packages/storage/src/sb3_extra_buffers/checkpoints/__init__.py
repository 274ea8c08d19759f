"""Checkpoints: named arrays in checksummed files that are replaced atomically and opened without being read."""

from sb3_extra_buffers.checkpoints.array_file import ArrayFile, open_arrays, write
from sb3_extra_buffers.checkpoints.atomic import replacing
from sb3_extra_buffers.checkpoints.format import FORMAT_VERSION
from sb3_extra_buffers.checkpoints.manifest import Manifest, load_state, read_manifest
from sb3_extra_buffers.checkpoints.writer import save_state
from sb3_extra_buffers.heaps.state import Log, Piece, State, StateError

__all__ = [
    "FORMAT_VERSION",
    "ArrayFile",
    "Log",
    "Manifest",
    "Piece",
    "State",
    "StateError",
    "load_state",
    "open_arrays",
    "read_manifest",
    "replacing",
    "save_state",
    "write",
]

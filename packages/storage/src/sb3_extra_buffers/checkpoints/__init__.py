"""Named arrays in one file: written at once or not at all, checked by checksums, opened without being read."""

from sb3_extra_buffers.checkpoints.array_file import ArrayFile, open_arrays
from sb3_extra_buffers.checkpoints.layout import FORMAT_VERSION
from sb3_extra_buffers.checkpoints.loading import load_state
from sb3_extra_buffers.checkpoints.manifest import Manifest, read_manifest
from sb3_extra_buffers.checkpoints.replacing import replacing
from sb3_extra_buffers.checkpoints.saving import save_state
from sb3_extra_buffers.checkpoints.writing import write
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

"""Named arrays in one file: written at once or not at all, checked by checksums, opened without being read."""

from sb3_extra_buffers.files.array_file import ArrayFile, open_arrays
from sb3_extra_buffers.files.layout import FORMAT_VERSION
from sb3_extra_buffers.files.loading import load_state
from sb3_extra_buffers.files.manifest import Manifest, read_manifest
from sb3_extra_buffers.files.replacing import replacing
from sb3_extra_buffers.files.saving import save_state
from sb3_extra_buffers.files.state import Log, Piece, State, StateError
from sb3_extra_buffers.files.writing import write

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

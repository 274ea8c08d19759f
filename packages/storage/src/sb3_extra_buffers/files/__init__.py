"""Another name of :mod:`sb3_extra_buffers.checkpoints`, kept for scripts that import it."""

from sb3_extra_buffers.checkpoints import (
    FORMAT_VERSION,
    ArrayFile,
    Log,
    Manifest,
    Piece,
    State,
    StateError,
    load_state,
    open_arrays,
    read_manifest,
    replacing,
    save_state,
    write,
)

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

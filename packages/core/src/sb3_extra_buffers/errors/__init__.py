"""Every error of this project, in one hierarchy.

::

    ExtraBuffersError
    ├── ParameterError            (ValueError)    a level or other parameter outside its range
    ├── CodecError
    │   ├── CellMismatchError     (ValueError)    a buffer of the wrong size, type or layout
    │   └── PayloadError          (ValueError)    bytes that cannot be decoded
    ├── PluginError
    │   ├── UnknownPluginError    (LookupError)   nobody offers this name
    │   ├── PluginLoadError       (ImportError)   installed, but broken; the cause is chained
    │   ├── PluginConflictError   (RuntimeError)  two distributions, one name
    │   └── PluginProtocolError   (TypeError)     written for another version of the protocol
    ├── HeapError
    │   ├── HeapFullError         (MemoryError)   one row is larger than the heap
    │   └── HeapStateError        (RuntimeError)  an operation out of order, a cell that is not there
    ├── FileError
    │   ├── FileMissingError      (FileNotFoundError)  there is no such file or folder
    │   ├── ForeignFileError      (ValueError)    a file of another format
    │   ├── FileVersionError      (ValueError)    written by a newer version
    │   ├── FileDamagedError      (ValueError)    bytes are altered or missing; it names them
    │   ├── FileContentError      (ValueError)    whole, but not what was asked for
    │   ├── FileReadError         (OSError)       no permission, too many open files
    │   └── FileWriteError        (OSError)       no folder, no permission, no space left
    ├── BufferStateError          (ValueError)    sampling what is empty, loading what is too new
    ├── ObservationError          (ValueError)    a value that cannot be stored as it is
    ├── MissingExtraError         (ImportError)   a feature whose extra is not installed
    └── DeviceError               (RuntimeError)  a device that is absent or cannot

Each also inherits the built-in in brackets, so code that knows nothing of this package can still catch it.
"""

from sb3_extra_buffers.errors.base import ExtraBuffersError
from sb3_extra_buffers.errors.buffer import BufferStateError, ObservationError
from sb3_extra_buffers.errors.codec import CellMismatchError, CodecError, PayloadError
from sb3_extra_buffers.errors.environment import DeviceError, MissingExtraError
from sb3_extra_buffers.errors.file import (
    FileContentError,
    FileDamagedError,
    FileError,
    FileMissingError,
    FileReadError,
    FileVersionError,
    FileWriteError,
    ForeignFileError,
)
from sb3_extra_buffers.errors.heap import HeapError, HeapFullError, HeapStateError
from sb3_extra_buffers.errors.parameter import ParameterError
from sb3_extra_buffers.errors.plugin import (
    PluginConflictError,
    PluginError,
    PluginLoadError,
    PluginProtocolError,
    UnknownPluginError,
)

__all__ = [
    "BufferStateError",
    "CellMismatchError",
    "CodecError",
    "DeviceError",
    "ExtraBuffersError",
    "FileContentError",
    "FileDamagedError",
    "FileError",
    "FileMissingError",
    "FileReadError",
    "FileVersionError",
    "FileWriteError",
    "ForeignFileError",
    "HeapError",
    "HeapFullError",
    "HeapStateError",
    "MissingExtraError",
    "ObservationError",
    "ParameterError",
    "PayloadError",
    "PluginConflictError",
    "PluginError",
    "PluginLoadError",
    "PluginProtocolError",
    "UnknownPluginError",
]

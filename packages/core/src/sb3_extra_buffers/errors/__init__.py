"""Every error of this project, in one hierarchy.

::

    ExtraBuffersError
    ├── ParameterError            (ValueError)    a level or other parameter outside its range
    ├── CodecError
    │   ├── CellMismatchError     (ValueError)    a buffer of the wrong size, type or layout
    │   └── PayloadError          (ValueError)    bytes that cannot be decoded
    ├── PluginError
    │   ├── UnknownPluginError    (LookupError)   no distribution offers this name
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

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

from sb3_extra_buffers.errors.install import install_command


class ExtraBuffersError(Exception):
    """Root of every error that this project raises on purpose.

    Subclasses are dataclasses: their fields are the facts, ``explain()`` makes a sentence of them. So an error can be
    pickled (``SubprocVecEnv`` sends exceptions through a pipe) and inspected without parsing its text.
    """

    _text = ""

    def explain(self) -> str:
        """Say what was asked, what was found, what is allowed and what to do next."""
        return _join(self._text.format_map(vars(self)) or type(self).__name__, getattr(self, "hint", ""))

    def __str__(self) -> str:
        return self.explain()

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with ``self.args``, which is empty when fields were given by keyword.
        assert is_dataclass(self)
        return partial(type(self), **{field.name: getattr(self, field.name) for field in fields(self)}), ()


def _join(*parts: str) -> str:
    """Join the sentences that are not empty."""
    return " ".join(part for part in parts if part)


@dataclass(eq=False)
class MismatchError(ExtraBuffersError):
    """An argument is something else than it must be."""

    _text = "{owner}: {argument} is {found}, expected {expected}."
    owner: str
    argument: str
    found: str
    expected: str
    hint: str = ""


@dataclass(eq=False)
class ParameterError(ExtraBuffersError, ValueError):
    """A codec or heap was asked for with a parameter that it does not take."""

    _text = "{owner}: {parameter}={value!r} is not allowed; {allowed}."
    owner: str
    parameter: str
    value: object
    allowed: str
    hint: str = ""


class CodecError(ExtraBuffersError):
    """An error of a codec, its cell or its payload."""


class CellMismatchError(MismatchError, CodecError, ValueError):
    """A buffer does not have the size, type or layout of the cell that the codec was bound to."""


@dataclass(eq=False)
class PayloadError(CodecError, ValueError):
    """A payload cannot be decoded: it was cut, extended, altered or written by another codec."""

    codec: str
    payload_nbytes: int
    problem: str
    index: int | None = None

    def explain(self) -> str:
        which = "payload" if self.index is None else f"payload {self.index} of the batch"
        return (
            f"{self.codec}: {which} ({self.payload_nbytes} bytes) cannot be decoded: {self.problem}. "
            "The stored bytes are damaged, or were written by another codec or for another cell."
        )


class PluginError(ExtraBuffersError):
    """A name does not lead to a working plugin."""


@dataclass(eq=False)
class UnknownPluginError(PluginError, LookupError):
    """No installed distribution offers this name."""

    kind: str
    name: str
    installed: tuple[str, ...]
    hint: str = ""

    def explain(self) -> str:
        installed = ", ".join(self.installed) or "none"
        return _join(f"There is no {self.kind} named {self.name!r}. Installed: {installed}.", self.hint)


@dataclass(eq=False)
class PluginLoadError(PluginError, ImportError):
    """The plugin is installed, but importing or registering it failed. The cause is chained."""

    kind: str
    name: str
    distribution: str
    cause: str

    def explain(self) -> str:
        return (
            f"The {self.kind} {self.name!r} of {self.distribution} is installed but does not work: {self.cause}. "
            f"Reinstall {self.distribution.split(' ')[0]} or repair what the cause names; nothing else is affected."
        )


@dataclass(eq=False)
class PluginConflictError(PluginError, RuntimeError):
    """Several distributions offer one name."""

    kind: str
    name: str
    distributions: tuple[str, ...]

    def explain(self) -> str:
        return (
            f"The {self.kind} name {self.name!r} is offered by {' and by '.join(self.distributions)}. "
            "Uninstall all but one of them; every other name keeps working."
        )


@dataclass(eq=False)
class PluginProtocolError(PluginError, TypeError):
    """The plugin was written for another version of the contract."""

    _text = "The {kind} {name!r} of {distribution} offers {found}, expected {expected}."
    kind: str
    name: str
    distribution: str
    found: str
    expected: str
    hint: str = ""


class HeapError(ExtraBuffersError):
    """An error of a heap."""


@dataclass(eq=False)
class HeapFullError(HeapError, MemoryError):
    """One row of payloads does not fit, even with everything else evicted; or memory or disk could not be allocated.

    A capacity of 0 means that nothing was allocated. ``never_fits`` means that an empty heap would refuse the row as
    well, so that a retry is useless; otherwise there may be room later.
    """

    heap: str
    needed: int
    capacity: int
    hint: str = ""
    never_fits: bool = False

    def explain(self) -> str:
        problem = f"could not allocate {self.needed} bytes"
        if self.capacity:
            problem = f"{self.needed} bytes were needed at once, the capacity is {self.capacity} bytes"
        return _join(f"{self.heap}: {problem}.", self.hint)


@dataclass(eq=False)
class HeapStateError(HeapError, RuntimeError):
    """The heap cannot do this in its present state."""

    _text = "{heap}: cannot {asked}: {found}."
    heap: str
    asked: str
    found: str
    hint: str = ""


#: How many damaged blocks an error names.
_NAMED = 8


class FileError(ExtraBuffersError):
    """A file cannot be read, and nothing of it was loaded; or it cannot be written."""


@dataclass(eq=False)
class FileMissingError(FileError, FileNotFoundError):
    """There is no such file or folder."""

    _text = "{path} does not exist."
    path: str
    hint: str = "Check the path."


@dataclass(eq=False)
class ForeignFileError(FileError, ValueError):
    """The file is of another format."""

    _text = "{path} is not a file of sb3-extra-buffers: {found}."
    path: str
    found: str
    hint: str = ""


@dataclass(eq=False)
class FileVersionError(FileError, ValueError):
    """The file was written by a version that this one does not understand."""

    _text = "{path} has format version {found}, this version reads up to {readable}."
    path: str
    found: int
    readable: int

    def explain(self) -> str:
        return f"{super().explain()} Run: {install_command('sb3-extra-buffers-storage', upgrade=True)}"


@dataclass(eq=False)
class FileDamagedError(FileError, ValueError):
    """Bytes of the file were changed or are missing."""

    path: str
    damage: tuple[str, ...]
    hint: str = "Use another copy of it."

    def explain(self) -> str:
        more = f"and {len(self.damage) - _NAMED} more" if len(self.damage) > _NAMED else ""
        named = "; ".join(filter(None, [*self.damage[:_NAMED], more]))
        return _join(f"{self.path} is damaged: {named}.", self.hint)


@dataclass(eq=False)
class FileContentError(FileError, ValueError):
    """The file is intact, but holds something else than was asked for."""

    _text = "{path}: expected {asked}, found {found}."
    path: str
    asked: str
    found: str
    hint: str = ""


@dataclass(eq=False)
class FileReadError(FileError, OSError):
    """The system refuses to open a file: no permission, too many open files, no address space."""

    _text = "{path} cannot be opened: {problem}."
    path: str
    problem: str
    hint: str = ""


@dataclass(eq=False)
class FileWriteError(FileError, OSError):
    """A file or folder cannot be written. The old content is intact; no unfinished file is left."""

    _text = "{asked}: cannot write {path}: {problem}."
    path: str
    asked: str
    problem: str
    hint: str = ""


@dataclass(eq=False)
class BufferStateError(ExtraBuffersError, ValueError):
    """The buffer cannot do this in its present state."""

    _text = "{buffer}: cannot {asked}: {found}."
    buffer: str
    asked: str
    found: str
    hint: str = ""


class ObservationError(MismatchError, ValueError):
    """A value has the wrong shape, or cannot be stored exactly."""


@dataclass(eq=False)
class MissingExtraError(ExtraBuffersError, ImportError):
    """A feature needs a package that is not installed."""

    feature: str
    package: str
    #: The extra that installs it; empty if there is none.
    extra: str
    distribution: str = "sb3-extra-buffers"
    hint: str = ""

    def explain(self) -> str:
        found = f"{self.feature} needs the package {self.package!r}, which is not installed."
        ours = self.package.startswith("sb3-extra-buffers")
        wanted = (self.package,) if ours else (self.distribution, self.extra)
        return _join(found, self.hint, f"Run: {install_command(*wanted)}" if ours or self.extra else "")


@dataclass(eq=False)
class DeviceError(ExtraBuffersError, RuntimeError):
    """A torch device is absent, or cannot do what was asked."""

    _text = "Device {device!r}: {problem}."
    device: str
    problem: str
    hint: str = ""

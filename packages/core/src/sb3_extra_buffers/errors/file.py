"""What can go wrong between a buffer and a file."""

from __future__ import annotations

from dataclasses import dataclass

from sb3_extra_buffers.errors.base import ExtraBuffersError, sentence_join

#: An error that names a thousand damaged blocks names none.
_NAMED = 8


class FileError(ExtraBuffersError):
    """A file that cannot be read as what it should be, of which nothing was loaded; or one that cannot be written."""


@dataclass(eq=False)
class FileMissingError(FileError, FileNotFoundError):
    """There is no such file or folder."""

    path: str
    hint: str = "Check the path."

    def explain(self) -> str:
        return sentence_join(f"{self.path} does not exist.", self.hint)


@dataclass(eq=False)
class ForeignFileError(FileError, ValueError):
    """The file is of another format."""

    path: str
    found: str
    hint: str = ""

    def explain(self) -> str:
        return sentence_join(f"{self.path} is not a file of sb3-extra-buffers: {self.found}.", self.hint)


@dataclass(eq=False)
class FileVersionError(FileError, ValueError):
    """The file was written by a version that this one does not understand."""

    path: str
    found: int
    readable: int

    def explain(self) -> str:
        return (
            f"{self.path} has format version {self.found}, this version reads up to {self.readable}. "
            "Run: pip install --upgrade sb3-extra-buffers-storage"
        )


@dataclass(eq=False)
class FileDamagedError(FileError, ValueError):
    """Bytes of the file are not those that were written, or are missing."""

    path: str
    damage: tuple[str, ...]
    hint: str = "Use another copy of it."

    def explain(self) -> str:
        named = "; ".join(self.damage[:_NAMED])
        rest = len(self.damage) - _NAMED
        more = f"; and {rest} more" if rest > 0 else ""
        return sentence_join(f"{self.path} is damaged: {named}{more}.", self.hint)


@dataclass(eq=False)
class FileContentError(FileError, ValueError):
    """The file is whole, but holds something else than was asked for."""

    path: str
    asked: str
    found: str
    hint: str = ""

    def explain(self) -> str:
        return sentence_join(f"{self.path}: expected {self.asked}, found {self.found}.", self.hint)


@dataclass(eq=False)
class FileReadError(FileError, OSError):
    """The system does not let a file be opened: no permission, too many open files, no address space."""

    path: str
    problem: str
    hint: str = ""

    def explain(self) -> str:
        return sentence_join(f"{self.path} cannot be opened: {self.problem}.", self.hint)


@dataclass(eq=False)
class FileWriteError(FileError, OSError):
    """A file or folder cannot be written. What was there before is there; nothing unfinished is left."""

    path: str
    asked: str
    problem: str
    hint: str = ""

    def explain(self) -> str:
        return sentence_join(f"{self.asked}: cannot write {self.path}: {self.problem}.", self.hint)

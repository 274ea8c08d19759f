"""``State``: the content of an object as JSON facts, arrays and logs, for checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Between the names of an object and of its parts.
SEPARATOR = "/"


class StateError(Exception):
    """A state does not fit. Loading a checkpoint turns it into a :class:`FileContentError` that names the file."""


@dataclass(frozen=True)
class Log:
    """Bytes that are only appended: what has a position keeps it and never changes. Saving again writes the new bytes.

    :param key: its name; a log that starts over has another one
    :param begin: the first position that is still needed
    :param end: the end, exclusive
    :param read: the bytes from one position to another, as arrays in order
    :param cuts: positions, in order, where it may be cut; bytes between two of them stay together
    """

    key: str
    begin: int
    end: int
    read: Callable[[int, int], Sequence[NDArray[np.uint8]]] = field(compare=False)
    cuts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), compare=False)


class Unread(Protocol):
    """Mapped files whose blocks are compared with their checksums when they are first read."""

    def check(self, addresses: NDArray[np.uint64], lengths: NDArray[np.int64], /) -> bool:
        """Compare the blocks that hold these bytes, and one more. Returns whether no block is left."""


class Piece:
    """A saved part of a log.

    :param begin: its position
    :param content: the bytes, read-only, possibly in a mapped file
    :param unread: if they were not compared with their checksums yet
    """

    def __init__(self, begin: int, content: NDArray[np.uint8], unread: Unread | None = None) -> None:
        self.begin, self.raw, self.unread = begin, content, unread

    @property
    def content(self) -> NDArray[np.uint8]:
        """The bytes, compared with their checksums. Heaps that compare each payload when it is read use ``raw``."""
        if self.unread is not None and len(self.raw):
            self.unread.check(np.array([self.raw.ctypes.data], np.uint64), np.array([len(self.raw)]))
        return self.raw


class Stored(Protocol):
    """A saved array that can be mapped into memory without being read."""

    def lay(self, target: NDArray[np.uint8]) -> None:
        """Give memory of the same size the content of the array."""


@dataclass
class State:
    """The state of one object; parts have names.

    :param facts: JSON values
    :param arrays: arrays by name
    :param logs: logs, when saving
    :param pieces: saved parts of logs by key, when loading
    :param stored: arrays that were not read yet, by name, when loading
    """

    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    logs: list[Log] = field(default_factory=list)
    pieces: Mapping[str, Sequence[Piece]] = field(default_factory=dict)
    stored: Mapping[str, Stored] = field(default_factory=dict)

    def put(self, name: str, part: State) -> State:
        """Add the state of a part, and return this one."""
        self.facts[name] = part.facts
        self.arrays.update({f"{name}{SEPARATOR}{key}": array for key, array in part.arrays.items()})
        for log in part.logs:
            self.logs.append(replace(log, key=f"{name}{SEPARATOR}{log.key}"))
        return self

    def part(self, name: str) -> State:
        """The state of a part."""
        begin = f"{name}{SEPARATOR}"
        arrays = {key[len(begin) :]: array for key, array in self.arrays.items() if key.startswith(begin)}
        pieces = {key[len(begin) :]: found for key, found in self.pieces.items() if key.startswith(begin)}
        stored = {key[len(begin) :]: found for key, found in self.stored.items() if key.startswith(begin)}
        return State(self.fact(name, dict), arrays, [], pieces, stored)

    def fact(self, name: str, kind: type | tuple[type, ...]) -> Any:
        """A fact of a certain type."""
        value = self.facts.get(name)
        if name not in self.facts or not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise StateError(f"{name!r} is {value!r}")
        return value

    def number(self, name: str, low: int, high: int) -> int:
        """An integer within limits, both included."""
        value: int = self.fact(name, int)
        if not low <= value <= high:
            raise StateError(f"{name!r} is {value}, it must be from {low} to {high}")
        return value

    def numbers(self, name: str, count: int | None = None) -> list[int]:
        """A list of integers."""
        values: list[int] = self.fact(name, list)
        if not all(type(value) is int for value in values) or (count is not None and len(values) != count):
            raise StateError(f"{name!r} is no list of {'' if count is None else count} integers")
        return values

    def same(self, **expected: Any) -> None:
        """Refuse facts that differ from these: the state of another object."""
        for name, value in expected.items():
            if self.facts.get(name) != value:
                raise StateError(f"{name!r} is {self.facts.get(name)!r}, expected {value!r}")

    def array(self, name: str, dtype: DTypeLike, *shape: int | None) -> NDArray[Any]:
        """An array of a certain dtype and shape; ``None`` stands for any length of an axis."""
        if name not in self.arrays:
            raise StateError(f"there is no array {name!r}")
        found = self.arrays[name]
        fits = found.ndim == len(shape) and all(want in (None, axis) for axis, want in zip(found.shape, shape))
        if found.dtype != np.dtype(dtype) or not fits:
            raise StateError(f"{name!r} is {found.dtype} of shape {found.shape}, expected {np.dtype(dtype)} of {shape}")
        return found

    def copy_to(self, **targets: NDArray[Any]) -> None:
        """Fill arrays with those of the same name, dtype and shape."""
        for name, target in targets.items():
            self._fill(target, name, self.array(name, target.dtype, *target.shape))

    def begin_of(self, **targets: NDArray[Any]) -> None:
        """Fill the beginning of arrays of zeros with the saved part: all but the zeros at their ends."""
        for name, target in targets.items():
            part = self.array(name, target.dtype, None, *target.shape[1:])
            if len(part) > len(target):
                raise StateError(f"{name!r} has {len(part)} elements, there is room for {len(target)}")
            self._fill(target[: len(part)], name, part)

    def _fill(self, target: NDArray[Any], name: str, content: NDArray[Any]) -> None:
        if name in self.stored and target.flags.c_contiguous:
            self.stored[name].lay(target.reshape(-1).view(np.uint8))
        else:
            target[...] = content


def within(name: str, numbers: NDArray[Any], low: int, high: int) -> None:
    """Refuse numbers outside of limits, both included: they would lead to other memory."""
    if numbers.size and (int(numbers.min()) < low or int(numbers.max()) > high):
        raise StateError(f"{name!r} has numbers outside of {low} to {high}")


def used(array: NDArray[Any]) -> NDArray[Any]:
    """A one-dimensional array without the zeros at its end, as it is saved."""
    nonzero = np.flatnonzero(array)
    return array[: nonzero[-1] + 1 if len(nonzero) else 0]

"""``State``: what an object is made of, as text, numbers and arrays, so that another one can become the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Between the names of an object and of its parts.
SEPARATOR = "/"


class StateError(Exception):
    """What of a state does not fit, in words. Whoever knows the file makes a :class:`FileContentError` of it."""


@dataclass(frozen=True)
class Log:
    """Bytes that are only ever appended: what has a position keeps it and never changes.

    So a log that was saved up to a position is saved again by writing what follows it.

    :param key: its name; what is forgotten and begun anew has another one
    :param begin: the first position that is still needed
    :param end: behind the last
    :param read: what is at positions from, up to; as arrays of bytes, in order
    :param cuts: positions, in order, where it may be cut; what lies between two of them stays together
    """

    key: str
    begin: int
    end: int
    read: Callable[[int, int], Sequence[NDArray[np.uint8]]] = field(compare=False)
    cuts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), compare=False)


@dataclass(frozen=True)
class Piece:
    """A part of a log that was saved.

    :param begin: its position
    :param content: the bytes; read-only, and to be left where they are
    """

    begin: int
    content: NDArray[np.uint8]


class Stored(Protocol):
    """An array that was saved, and can be laid somewhere without being read."""

    def lay(self, target: NDArray[np.uint8]) -> None:
        """Give memory its content.

        :param target: bytes; as many as it has
        """


@dataclass
class State:
    """The state of one object; parts have names.

    :param facts: what JSON can say
    :param arrays: numbers by name
    :param logs: bytes that are only appended, for who saves
    :param pieces: the same as it was saved, by key, for who loads
    :param stored: where those arrays are that were not read yet, by name
    """

    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    logs: list[Log] = field(default_factory=list)
    pieces: Mapping[str, Sequence[Piece]] = field(default_factory=dict)
    stored: Mapping[str, Stored] = field(default_factory=dict)

    def put(self, name: str, part: State) -> State:
        """Take in the state of a part. Returns this one."""
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
        """Refuse facts that are others than these: the state of another object."""
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
        """Fill the beginning of arrays of zeros with what was saved of them: all but the zeros at their ends."""
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
    """Refuse numbers outside of limits, both included: whoever follows them would read somewhere else."""
    if numbers.size and (int(numbers.min()) < low or int(numbers.max()) > high):
        raise StateError(f"{name!r} has numbers outside of {low} to {high}")


def used(array: NDArray[Any]) -> NDArray[Any]:
    """What is saved of an array of one dimension: all but the zeros at its end."""
    nonzero = np.flatnonzero(array)
    return array[: nonzero[-1] + 1 if len(nonzero) else 0]

"""The codec contract.

A codec turns the bytes of one *cell* into a *payload* and back, without losing a bit. It is bound to a cell (dtype
and element count) before use, so everything that can be checked, allocated or compiled once is done there.

The types below give the signatures. The rules in :mod:`sb3_extra_buffers.testing` check the behaviour.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike

from sb3_extra_buffers.errors import CellMismatchError, ParameterError
from sb3_extra_buffers.memory import Buffer, Bytes, ByteSource, Indices, view_bytes
from sb3_extra_buffers.registry import Scalar

_KINDS = "biuf"
# Without a slash only a name of letters may carry a level: zstd-5 is level -5 of zstd, but lz4-frame5 would be a
# guess, and bz2 must be able to be a name.
_LETTERS_THEN_LEVEL = re.compile(r"([A-Za-z]+)(-?[0-9]+)")
_INTEGER = re.compile(r"-?[0-9]+")


class CellSpec:
    """The type of a cell: a fixed number of elements of one dtype. Immutable, hashable, picklable.

    :param dtype: any bool, integer or float dtype, in any byte order
    :param count: number of elements, at least 1
    """

    __slots__ = ("_count", "_dtype")

    def __init__(self, dtype: DTypeLike, count: int) -> None:
        try:
            self._dtype: np.dtype[Any] = np.dtype(dtype)
        except TypeError as error:
            raise ParameterError("CellSpec", "dtype", dtype, "it must name a dtype of numpy") from error
        if dtype is None or self._dtype.kind not in _KINDS or self._dtype.subdtype is not None:
            raise ParameterError("CellSpec", "dtype", dtype, "it must be a plain bool, integer or float dtype")
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ParameterError("CellSpec", "count", count, "it must be an integer of at least 1")
        self._count = int(count)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of each element."""
        return self._dtype

    @property
    def count(self) -> int:
        """How many elements there are."""
        return self._count

    @property
    def nbytes(self) -> int:
        """Size of the raw cell in bytes."""
        return self._dtype.itemsize * self._count

    def view(self, owner: str, argument: str, buffer: Buffer, *, writable: bool = False) -> memoryview:
        """A flat view of the bytes of one such cell, or an error that says what is wrong with the buffer.

        An array must have the dtype of the cell, or be raw bytes (uint8).

        :param owner: the name of the caller, for the error
        :param argument: the argument's name, for the error
        :param buffer: any object with the buffer protocol
        :param writable: whether it will be written to
        """
        if isinstance(buffer, np.ndarray) and buffer.dtype not in (self._dtype, np.uint8):
            expected = f"{self} or its bytes as uint8"
            raise CellMismatchError(owner, argument, f"an array of {buffer.dtype}", expected, f"Bound to {self!r}.")
        view = view_bytes(owner, argument, buffer, writable=writable)
        if view.nbytes != self.nbytes:
            expected = f"{self.nbytes} bytes ({self})"
            raise CellMismatchError(owner, argument, f"{view.nbytes} bytes long", expected)
        return view

    def to_json(self) -> dict[str, Any]:
        """A form that JSON can hold and :meth:`from_json` reads back."""
        return {"dtype": self._dtype.str, "count": self._count}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CellSpec:
        """Rebuild what :meth:`to_json` wrote."""
        if set(data) != {"dtype", "count"}:
            raise ParameterError("CellSpec", "json", dict(data), 'it must look like {"dtype": "|u1", "count": 7056}')
        return cls(data["dtype"], data["count"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CellSpec):
            return NotImplemented
        return (self._dtype, self._count) == (other._dtype, other._count)

    def __hash__(self) -> int:
        return hash((self._dtype, self._count))

    def __repr__(self) -> str:
        return f"CellSpec({self._dtype.str!r}, {self._count})"

    def __str__(self) -> str:
        return f"{self._count} x {self._dtype.name}"


class CodecSpec:
    """A codec by name and parameters; immutable, hashable, picklable, JSON in and out.

    :param name: the word under which the codec is registered
    :param params: its parameters; what is left out takes the codec's default when it is bound
    """

    __slots__ = ("_name", "_params")

    def __init__(self, name: str, params: Mapping[str, Scalar] | None = None) -> None:
        self._name = name
        self._params = dict(params or {})

    @property
    def name(self) -> str:
        """The word under which the codec is registered."""
        return self._name

    @property
    def params(self) -> Mapping[str, Scalar]:
        """The parameters, read-only."""
        return MappingProxyType(self._params)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CodecSpec):
            return NotImplemented
        return (self._name, self._params) == (other._name, other._params)

    def __hash__(self) -> int:
        return hash((self._name, frozenset(self._params.items())))

    def __repr__(self) -> str:
        return f"CodecSpec({self._name!r}, {self._params!r})"

    def __str__(self) -> str:
        """The shorthand, where the level says it all; otherwise with the other parameters in brackets.

        A flag that is not set is not mentioned: a bound ``zstd/3`` reads as it was typed.
        """
        named = ((key, value) for key, value in sorted(self.params.items()) if key != "level" and value is not False)
        rest = ", ".join(f"{key}={value}" for key, value in named)
        level = self.params.get("level")
        return self.name + (f"/{level}" if level is not None else "") + (f"({rest})" if rest else "")

    def to_json(self) -> dict[str, Any]:
        """A form that JSON can hold and :meth:`from_json` reads back."""
        return {"name": self.name, "params": dict(self.params)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CodecSpec:
        """Rebuild what :meth:`to_json` wrote."""
        fits = isinstance(data.get("name"), str) and isinstance(data.get("params") or {}, Mapping)
        if not fits or not set(data) <= {"name", "params"}:
            raise ParameterError(
                "codec", "spec", dict(data), 'it must look like {"name": "zstd", "params": {"level": 3}}'
            )
        return cls(data["name"], data.get("params"))

    @classmethod
    def parse(cls, text: str, known_names: Collection[str] | None = None) -> CodecSpec:
        """Read the shorthand: ``zstd``, ``zstd-5``, ``zstd/-5``, ``igzip3``, ``lz4-frame/5``, ``bz2``, ``bz2/9``.

        :param text: the shorthand
        :param known_names: existing names. An exact match is not split into a name and a level, and a level is split
            off only if a known name remains. With ``None``, only the form counts
        """
        if not isinstance(text, str) or not text:
            raise ParameterError("codec", "name", text, "it must be text such as 'zstd', 'zstd-5' or 'lz4-frame/5'")
        if known_names is not None and text in known_names:
            return cls(text)
        if "/" in text:
            name, _, level = text.rpartition("/")
            if not name or not _INTEGER.fullmatch(level):
                raise ParameterError(
                    "codec", "name", text, "around the slash stand a name and an integer, as in 'lz4-frame/5'"
                )
            return cls(name, {"level": int(level)})
        match = _LETTERS_THEN_LEVEL.fullmatch(text)
        if match and (known_names is None or match[1] in known_names):
            return cls(match[1], {"level": int(match[2])})
        return cls(text)


# Pickles name the public module, so that private ones can be renamed.
CellSpec.__module__ = CodecSpec.__module__ = "sb3_extra_buffers.codecs"


@runtime_checkable
class Codec(Protocol):
    """One codec, bound to one cell.

    Methods may be called from several threads at once, and after a fork. A codec pickles (as its spec and cell).
    """

    @property
    def spec(self) -> CodecSpec:
        """Name and complete parameters: binding it again gives a codec that decodes every payload of this one."""

    @property
    def cell(self) -> CellSpec:
        """The cell that this codec encodes and decodes."""

    @property
    def max_encoded_nbytes(self) -> int:
        """A hard bound on the size of a payload, for *any* content. An incompressible cell is stored raw."""

    @property
    def detects_corruption(self) -> bool:
        """Whether a payload that was cut, extended or altered is certain to raise rather than give a wrong cell."""

    def encode(self, cell: Buffer, /) -> Buffer:
        """Return the payload of a cell: at least one byte. The input is neither changed nor kept.

        :param cell: exactly ``self.cell.nbytes`` bytes
        """

    def decode_into(self, payload: Buffer, out: Buffer, /) -> None:
        """Write the cell into ``out``: all of it and nothing beside it.

        :param payload: what :meth:`encode` returned
        :param out: exactly ``self.cell.nbytes`` writable bytes
        :raise PayloadError: if the payload cannot be decoded; the content of ``out`` is then undefined
        """


# Optional capabilities. A codec has one if it has its members.


@runtime_checkable
class ThreadedCodec(Protocol):
    """A codec that releases the interpreter lock, so that a batch may be decoded by several threads."""

    @property
    def min_nbytes_per_thread(self) -> int | None:
        """Decoded bytes per thread from which another thread is faster; ``None`` if it never is."""


@runtime_checkable
class BatchCodec(Codec, Protocol):
    """A codec with a faster way to handle many cells. Without both methods, the core loops over single cells."""

    def encode_batch(self, rows: Bytes, out: Bytes, /) -> Indices:
        """Write the payloads of all rows into ``out``, contiguous, and return their lengths.

        :param rows: shape ``(n, cell.nbytes)``, C-contiguous
        :param out: one-dimensional, with room for ``n * max_encoded_nbytes`` bytes
        """

    def decode_batch(self, source: ByteSource, starts: Indices, lengths: Indices, out: Bytes, /) -> None:
        """Decode ``n`` payloads into the rows of ``out``. Positions may repeat and come in any order.

        :param source: where the payloads live
        :param starts: their positions in ``source``
        :param lengths: their sizes in bytes
        :param out: shape ``(n, cell.nbytes)``, C-contiguous; row ``i`` receives payload ``i``
        """

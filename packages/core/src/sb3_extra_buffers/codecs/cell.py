"""The unit of storage: a fixed number of elements of one dtype."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sb3_extra_buffers.errors import CellMismatchError, ParameterError
from sb3_extra_buffers.memory import Buffer, view_bytes

_KINDS = "biuf"


class CellSpec:
    """What one cell holds; immutable, hashable, picklable. A codec is bound to it and sees cells of this size only.

    :param dtype: any bool, integer or float dtype, in any byte order
    :param count: how many elements, at least 1 (there is nothing to encode in an empty cell)
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
        """See a buffer as the bytes of one such cell, or say precisely why it is none.

        An array must have the dtype of the cell, or be raw bytes (uint8).

        :param owner: who asks, for the error
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

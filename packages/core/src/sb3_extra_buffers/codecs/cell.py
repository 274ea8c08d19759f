"""The unit of storage: a fixed number of elements of one dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sb3_extra_buffers.errors import ParameterError

_KINDS = "biuf"


@dataclass(frozen=True)
class CellSpec:
    """What one cell holds. A codec is bound to it before use and sees cells of this size only.

    :param dtype: any bool, integer or float dtype, in any byte order
    :param count: how many elements, at least 1 (there is nothing to encode in an empty cell)
    """

    dtype: np.dtype[Any]
    count: int

    def __init__(self, dtype: Any, count: int) -> None:
        dtype = np.dtype(dtype)
        if dtype.kind not in _KINDS or dtype.subdtype is not None:
            raise ParameterError("CellSpec", "dtype", dtype, "it must be a plain bool, integer or float dtype")
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ParameterError("CellSpec", "count", count, "it must be an integer of at least 1")
        object.__setattr__(self, "dtype", dtype)
        object.__setattr__(self, "count", int(count))

    @property
    def nbytes(self) -> int:
        """Size of the raw cell in bytes."""
        return self.dtype.itemsize * self.count

    def to_json(self) -> dict[str, Any]:
        """A form that JSON can hold and :meth:`from_json` reads back."""
        return {"dtype": self.dtype.str, "count": self.count}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> CellSpec:
        """Rebuild what :meth:`to_json` wrote."""
        return cls(data["dtype"], data["count"])

    def __str__(self) -> str:
        return f"{self.count} x {self.dtype.name}"

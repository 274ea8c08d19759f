"""What safetensors calls the dtypes of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_extra_buffers.errors import ParameterError

#: By name. All are little-endian in the file.
BY_NAME: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
_BY_DTYPE = {dtype: name for name, dtype in BY_NAME.items()}


def name_of(dtype: np.dtype[Any]) -> str:
    """The name of a dtype that a file can hold."""
    return _BY_DTYPE[dtype]


def storable(name: str, value: ArrayLike) -> NDArray[Any]:
    """A value as it is written: C-contiguous and little-endian.

    :param name: of the array, for the error
    :param value: anything numpy can read
    """
    array = np.asarray(value)
    dtype = array.dtype.newbyteorder("<")
    if dtype not in _BY_DTYPE:
        allowed = f"it must be one of {', '.join(str(kind) for kind in _BY_DTYPE)}"
        raise ParameterError("files.write", f"dtype of {name!r}", str(array.dtype), allowed)
    # ascontiguousarray() would give a scalar an axis.
    return np.asarray(array, dtype, order="C")

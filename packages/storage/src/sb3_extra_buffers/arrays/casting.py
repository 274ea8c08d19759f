"""Values as another dtype, or an error: nothing wraps, is clipped or loses its fraction in silence."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ObservationError, ParameterError

_NUMBERS = "biuf"


def storable(dtype: Any) -> np.dtype[Any]:
    """The dtype to store elements as, if it is one of numbers."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except TypeError as error:
        raise ParameterError("buffer", "dtypes", dtype, "it must name a dtype of numpy") from error
    if found.kind not in _NUMBERS:
        raise ParameterError("buffer", "dtypes", dtype, "it must be a plain bool, integer or float dtype")
    return found


def as_numbers(owner: str, argument: str, value: Any) -> NDArray[Any]:
    """An array of numbers from anything that numpy or torch can read. The parameters are those of :func:`fit`."""
    if hasattr(value, "detach"):  # a torch tensor, possibly on a device or with a gradient
        value = value.detach().cpu().numpy()
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        raise ObservationError(owner, argument, f"a {type(value).__name__} of no shape", "numbers") from None
    if array.dtype.kind not in _NUMBERS:
        raise ObservationError(owner, argument, f"an array of {array.dtype}", "numbers")
    return array


def fit(owner: str, argument: str, value: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert as an assignment to an array of ``dtype`` does, where that keeps the values.

    A float may be rounded to a narrower float, as in every array; it must not become infinite. Whatever becomes an
    integer or a bool must be one. ``owner`` and ``argument`` are for the error.
    """
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return value
    array = as_numbers(owner, argument, value)
    if np.can_cast(array.dtype, dtype, "safe"):
        return array.astype(dtype, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        converted = array.astype(dtype)
    wrong = ~np.isfinite(converted) & np.isfinite(array) if dtype.kind == "f" else converted != array
    if wrong.any():
        raise _misfit(owner, argument, array, wrong, dtype)
    return converted


def narrow(owner: str, argument: str, array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Convert to a dtype that was chosen for storing, where every bit can be restored. Errors are as by :func:`fit`."""
    if array.dtype == dtype:
        return array
    with np.errstate(invalid="ignore", over="ignore"):
        stored = array.astype(dtype)
        restored = stored.astype(array.dtype)
    # Bit by bit, so that NaN equals itself and the zeros do not equal each other.
    bits = f"u{array.dtype.itemsize}" if array.dtype.itemsize <= 8 else array.dtype
    flat = np.ascontiguousarray(array).reshape(-1)
    wrong = np.ascontiguousarray(restored).reshape(-1).view(bits) != flat.view(bits)
    if wrong.any():
        raise _misfit(owner, argument, flat, wrong, dtype, "Leave dtypes out: the space decides.")
    return stored


def _misfit(
    owner: str, argument: str, array: NDArray[Any], wrong: NDArray[np.bool_], dtype: np.dtype[Any], hint: str = ""
) -> ObservationError:
    if dtype.kind in "iu":
        allowed = f"integers from {np.iinfo(dtype).min} to {np.iinfo(dtype).max}"
    elif dtype.kind == "b":
        allowed = "0 or 1"
    else:
        allowed = f"values up to {np.finfo(dtype).max}"
    found = f"{array.dtype} with the value {array[wrong][0]!s} in it ({int(wrong.sum())} do not fit)"
    return ObservationError(owner, argument, found, f"{dtype}: {allowed}", hint)


def broadcast(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Repeat values to a shape, as an assignment does."""
    while values.ndim > len(shape) and values.shape[0] == 1:
        values = values[0]  # as numpy's assignment does
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        expected = f"what can be broadcast to {shape}"
        raise ObservationError("CompressedArray", "value", f"of shape {values.shape}", expected) from None


def as_shape(name: str, shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """Axes as a tuple of integers, from one integer or several."""
    axes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if any(isinstance(axis, bool) or not isinstance(axis, (int, np.integer)) or axis < 0 for axis in axes):
        raise ParameterError("CompressedArray", name, shape, "it must be an integer or a tuple of integers")
    return tuple(int(axis) for axis in axes)

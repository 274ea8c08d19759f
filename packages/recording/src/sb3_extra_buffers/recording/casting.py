"""Convert values to the dtypes of a recording; raise instead of changing a value silently."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.arrays import fit
from sb3_extra_buffers.arrays.casting import narrow, storable
from sb3_extra_buffers.errors import ObservationError, ParameterError


def as_dtype(owner: str, dtype: Any, argument: str = "dtypes") -> np.dtype[Any]:
    """Return a numeric dtype. Names such as ``"uint8"`` and ``"np.uint8"`` are accepted.

    :param owner: class name, for errors
    :param dtype: the given value
    :param argument: parameter name, for errors
    """
    name = dtype.removeprefix("numpy.").removeprefix("np.") if isinstance(dtype, str) else dtype
    try:
        return storable(name)
    except ParameterError as error:
        raise ParameterError(owner, argument, dtype, error.allowed) from None


def cast(owner: str, argument: str, value: Any, dtype: np.dtype[Any], hint: str = "") -> NDArray[Any]:
    """Convert as an assignment does: floats may be rounded, every other value must fit.

    :param owner: class name, for errors
    :param argument: name of the value, for errors
    :param value: anything numpy can convert to an array
    :param dtype: target dtype
    :param hint: next step, for errors
    """
    try:
        return fit(owner, argument, value, dtype)
    except ObservationError as error:
        raise ObservationError(owner, argument, error.found, error.expected, hint) from None
    except (TypeError, ValueError) as error:
        raise ObservationError(owner, argument, f"{type(value).__name__} ({error})", "numbers", hint) from None


def cast_exactly(owner: str, argument: str, value: Any, dtype: np.dtype[Any], hint: str = "") -> NDArray[Any]:
    """Convert only if every value can be restored, floats included. Parameters as for :func:`cast`."""
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return value
    converted = cast(owner, argument, value, dtype, hint)
    if dtype.kind == "f":  # cast() may have rounded
        try:
            narrow(owner, argument, np.asarray(value), dtype)
        except ObservationError as error:
            expected = f"values that {dtype} holds exactly"
            raise ObservationError(owner, argument, error.found, expected, hint) from None
    return converted


def is_integer(value: Any, least: int) -> bool:
    """Whether a value is an integer of at least ``least``. ``True`` and ``False`` are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= least


def check_integer(owner: str, argument: str, value: Any, least: int = 1) -> int:
    """Return an integer of at least ``least``, or raise.

    :param owner: class name, for errors
    :param argument: parameter name, for errors
    :param value: the given value
    :param least: smallest allowed value
    """
    if not is_integer(value, least):
        raise ParameterError(owner, argument, value, f"it must be an integer of at least {least}")
    return int(value)

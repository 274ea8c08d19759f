"""Values as the dtype that a recording has for them, or an error: what is recorded is what comes back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.arrays import fit
from sb3_extra_buffers.arrays.casting import narrow, storable
from sb3_extra_buffers.errors import ObservationError, ParameterError


def as_dtype(owner: str, dtype: Any, argument: str = "dtypes") -> np.dtype[Any]:
    """A dtype of numbers, given as such or by name: ``"uint8"``, also with ``np.`` before it.

    :param owner: who asks, for the error
    :param dtype: what was given
    :param argument: as what, for the error
    """
    name = dtype.removeprefix("numpy.").removeprefix("np.") if isinstance(dtype, str) else dtype
    try:
        return storable(name)
    except ParameterError as error:
        raise ParameterError(owner, argument, dtype, error.allowed) from None


def exactly(owner: str, argument: str, value: Any, dtype: np.dtype[Any], hint: str = "") -> NDArray[Any]:
    """Convert to a dtype if every value can be restored from it, floats included.

    :param owner: who asks, for the error
    :param argument: what the value is, for the error
    :param value: anything numpy can read
    :param dtype: the dtype to fit into
    :param hint: what to do about it, for the error
    """
    if isinstance(value, np.ndarray) and value.dtype == dtype:
        return value
    fitted = fitting(owner, argument, value, dtype, hint)
    if dtype.kind == "f":  # to which values may have been rounded
        try:
            narrow(owner, argument, np.asarray(value), dtype)
        except ObservationError as error:
            expected = f"values that {dtype} holds exactly"
            raise ObservationError(owner, argument, error.found, expected, hint) from None
    return fitted


def fitting(owner: str, argument: str, value: Any, dtype: np.dtype[Any], hint: str = "") -> NDArray[Any]:
    """Convert to a dtype as an assignment does: floats may be rounded to it, anything else must fit.

    :param owner: who asks, for the error
    :param argument: what the value is, for the error
    :param value: anything numpy can read
    :param dtype: the dtype to fit into
    :param hint: what to do about it, for the error
    """
    try:
        return fit(owner, argument, value, dtype)
    except ObservationError as error:
        raise ObservationError(owner, argument, error.found, error.expected, hint) from None
    except (TypeError, ValueError) as error:
        raise ObservationError(owner, argument, f"{type(value).__name__} ({error})", "numbers", hint) from None

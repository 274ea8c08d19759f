"""Values as JSON that come back exactly as they were: same types, same dtypes, same bits."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from sb3_extra_buffers.compressed.space_json import can_hold, numbers_to_json
from sb3_extra_buffers.errors import ParameterError

_ALLOWED = (
    "a checkpoint can hold None, bool, int, float, str, numbers and arrays of numbers of numpy, and lists, tuples and "
    "dictionaries of these"
)
_HINT = "Leave it out, or use save_replay_buffer of the model, which pickles any."
#: Decimal digits that Python reads at least, whatever it was told.
_MAX_DIGITS = 640
_MAX_INT = 10**_MAX_DIGITS


def to_exact_json(owner: str, name: str, value: Any) -> Any:
    """A form that JSON can hold and :func:`from_json` reads back as it was.

    :param owner: the buffer's class, for the error
    :param name: of what the value belongs to
    :param value: anything; what would come back as something else is refused
    """
    try:
        return _form(owner, name, value)
    except RecursionError:
        raise ParameterError(owner, name, type(value).__name__, "it contains itself, or is too deep", _HINT) from None


def _form(owner: str, name: str, value: Any) -> Any:
    # Exact types: a subclass, such as an IntEnum or numpy's float64, would come back as what it derives from.
    kind = type(value)
    if value is None or kind in (bool, float, str) or (kind is int and abs(value) < _MAX_INT):
        return value
    if isinstance(value, np.generic) and can_hold(value):
        return {"number": numbers_to_json(value)}
    if kind is np.ndarray and can_hold(value):
        return {"array": {"shape": list(value.shape), **numbers_to_json(value)}}
    if kind in (dict, OrderedDict):  # the latter is what Stable-Baselines3 keeps of a last observation
        pairs = [[_form(owner, name, key), _form(owner, name, part)] for key, part in value.items()]
        return {"mapping" if kind is dict else "ordered": pairs}
    if kind in (list, tuple):
        return {kind.__name__: [_form(owner, name, part) for part in value]}
    if kind is int:  # Python would not print it either
        allowed = f"it must have at most {_MAX_DIGITS} digits"
        raise ParameterError(owner, name, f"an int of {value.bit_length()} bits", allowed, _HINT)
    raise ParameterError(owner, name, value, _ALLOWED, _HINT)

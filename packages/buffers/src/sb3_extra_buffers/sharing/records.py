"""What a record holds: a structured dtype of numpy, written down so that another process finds the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from sb3_extra_buffers.errors import ParameterError

#: Between the name of an observation and a key of its space.
KEY = "."


def transition_record(observation_space: Any, action_space: Any) -> np.dtype[Any]:
    """
    What one transition of one environment takes.

    :param observation_space: a space with a shape and a dtype, or a Dict of such spaces
    :param action_space: a space with a shape and a dtype
    """
    fields: list[tuple[str, Any, tuple[int, ...]]] = []
    for name in ("obs", "next_obs"):
        parts = getattr(observation_space, "spaces", None)
        named = {name: observation_space} if parts is None else {f"{name}{KEY}{key}": parts[key] for key in parts}
        fields += [(field, space.dtype, space.shape) for field, space in named.items()]
    fields.append(("action", action_space.dtype, action_space.shape))
    fields += [("reward", np.float32, ()), ("done", np.bool_, ()), ("timeout", np.bool_, ())]
    for field, dtype, shape in fields:
        if dtype is None or shape is None or np.dtype(dtype).hasobject:
            raise ParameterError("transition_record", field, f"{dtype} of {shape}", "it must have a shape and a dtype")
    return np.dtype([(field, np.dtype(dtype), tuple(shape)) for field, dtype, shape in fields], align=True)


def described(record: np.dtype[Any]) -> bytes:
    """A dtype as JSON."""
    if record.fields is None or record.names is None or record.hasobject:
        raise ParameterError("Ring", "record", str(record), "it must be a structured dtype without Python objects")
    fields: Mapping[str, Any] = record.fields
    rows = [[name, fields[name][0].base.str, list(fields[name][0].shape), fields[name][1]] for name in record.names]
    return json.dumps({"fields": rows, "itemsize": record.itemsize}).encode()


def parsed(text: bytes) -> np.dtype[Any]:
    """The dtype that was described. What is none is a ``ValueError``."""
    try:
        found = json.loads(text)
        names, formats, offsets = [], [], []
        for name, base, shape, offset in found["fields"]:
            if np.dtype(base).hasobject:
                raise ValueError("objects cannot be shared")
            names.append(name)
            formats.append((base, tuple(shape)))
            offsets.append(offset)
        itemsize = found["itemsize"]
        return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": itemsize})
    except (KeyError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None

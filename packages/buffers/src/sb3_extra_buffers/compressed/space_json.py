"""Spaces of gymnasium as JSON: what a checkpoint says of observations and actions."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import OrderedDict
from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import StateError
from sb3_extra_buffers.errors import ParameterError

#: No observation is larger. What claims to be, is refused before anything is allocated for it.
MAX_SPACE_NBYTES = 1 << 30
#: Of dtypes whose bytes are all that there is to them.
_KINDS_OF_NUMBERS = "biuf"


def space_to_json(owner: str, space: spaces.Space[Any]) -> dict[str, Any]:
    """A form that JSON can hold and :func:`space_from_json` reads back.

    :param owner: who asks, for the error
    :param space: a Box, Discrete, MultiDiscrete, MultiBinary, or a Dict of these
    """
    if type(space) is spaces.Dict:
        return {"kind": "Dict", "parts": [[key, space_to_json(owner, part)] for key, part in space.spaces.items()]}
    if type(space) is spaces.Box:
        limits = {"low": numbers_to_json(space.low), "high": numbers_to_json(space.high)}
        return {"kind": "Box", "shape": _shape(space), **limits}
    if type(space) is spaces.Discrete:
        return {"kind": "Discrete", "n": numbers_to_json(space.n), "start": numbers_to_json(space.start)}
    if type(space) is spaces.MultiDiscrete:
        numbers = {"nvec": numbers_to_json(space.nvec), "start": numbers_to_json(space.start)}
        return {"kind": "MultiDiscrete", "shape": _shape(space), **numbers}
    if type(space) is spaces.MultiBinary:
        return {"kind": "MultiBinary", "shape": _shape(space)}
    allowed = "a checkpoint can hold Box, Discrete, MultiDiscrete, MultiBinary, and Dict spaces of these"
    raise ParameterError(owner, "space", space, allowed, "save_replay_buffer of the model pickles any.")


def space_from_json(said: Any) -> spaces.Space[Any]:
    """Rebuild what :func:`space_to_json` wrote."""
    try:
        return _KINDS[said["kind"]](said)
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        raise StateError(f"a space cannot be read ({type(error).__name__}: {error})") from None


def _shape(space: spaces.Space[Any]) -> list[int]:
    return [int(axis) for axis in space.shape or ()]


def can_hold(values: np.generic | NDArray[Any]) -> bool:
    """Whether :func:`numbers_from_json` reads numbers of such a dtype, and as many."""
    return values.dtype.kind in _KINDS_OF_NUMBERS and values.nbytes <= MAX_SPACE_NBYTES


def numbers_to_json(values: Any) -> dict[str, str]:
    """Numbers bit by bit. If all are the same, once."""
    array = np.asarray(values)
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.size and flat.tobytes() == flat[:1].tobytes() * flat.size:
        flat = flat[:1]
    return {"dtype": array.dtype.str, "bytes": b64encode(flat.tobytes()).decode()}


def numbers_from_json(said: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Rebuild what :func:`numbers_to_json` wrote."""
    dtype = np.dtype(str(said["dtype"]))
    if dtype.kind not in _KINDS_OF_NUMBERS:
        raise ValueError(f"{dtype} is no dtype of numbers")
    if not all(type(axis) is int and axis >= 0 for axis in shape) or prod(shape) * dtype.itemsize > MAX_SPACE_NBYTES:
        raise ValueError(f"it has the shape {shape}")
    flat = np.frombuffer(b64decode(said["bytes"], validate=True), dtype)
    if flat.size == 1:
        return np.full(shape, flat[0], dtype)
    return flat.reshape(shape).copy()


def _box(said: Any) -> spaces.Space[Any]:
    shape = tuple(said["shape"])
    low, high = numbers_from_json(said["low"], shape), numbers_from_json(said["high"], shape)
    return spaces.Box(low, high, shape, low.dtype.type)


def _discrete(said: Any) -> spaces.Space[Any]:
    n, start = numbers_from_json(said["n"], ()), numbers_from_json(said["start"], ())
    return spaces.Discrete(n.item(), start=start.item(), dtype=n.dtype.type)


def _multi_discrete(said: Any) -> spaces.Space[Any]:
    shape = tuple(said["shape"])
    nvec, start = numbers_from_json(said["nvec"], shape), numbers_from_json(said["start"], shape)
    return spaces.MultiDiscrete(nvec, dtype=nvec.dtype.type, start=start)


def _multi_binary(said: Any) -> spaces.Space[Any]:
    shape = tuple(said["shape"])
    numbers_from_json({"dtype": "|i1", "bytes": "AA=="}, shape)  # refuses what is too large
    return spaces.MultiBinary(shape if len(shape) != 1 else shape[0])


def _dict(said: Any) -> spaces.Space[Any]:
    # In the order that was saved: gymnasium sorts the keys of other mappings.
    return spaces.Dict(OrderedDict((str(key), space_from_json(part)) for key, part in said["parts"]))


_KINDS = {
    "Box": _box,
    "Dict": _dict,
    "Discrete": _discrete,
    "MultiBinary": _multi_binary,
    "MultiDiscrete": _multi_discrete,
}

"""JSON forms of the spaces, constructor arguments and infos of a buffer, for checkpoints."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import State, StateError
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.errors import ExtraBuffersError, ParameterError

#: Limit for one array.
_MAX_ARRAY_NBYTES = 1 << 30
#: Equal numbers are stored once. All arrays and spaces together may take this much memory, or this many times the size
#: of the files that hold them; a larger claim is refused before memory is allocated.
_ROOM_NBYTES, _ROOM_RATIO = 1 << 26, 1 << 10
_NUMBER_KINDS = "biuf"
_EXACT_TYPES = (
    "a checkpoint can hold None, bool, int, float, str, numbers and arrays of numbers of numpy, and lists, tuples and "
    "dictionaries of these"
)
_EXACT_HINT = "Leave it out, or use save_replay_buffer of the model, which pickles any."
#: Python reads at least this many decimal digits, whatever its limit is set to.
_MAX_DIGITS = 640
_MAX_INT = 10**_MAX_DIGITS


def can_hold(values: np.generic | NDArray[Any]) -> bool:
    """Whether :func:`numbers_from_json` can read an array of this dtype and size."""
    return values.dtype.kind in _NUMBER_KINDS and values.nbytes <= _MAX_ARRAY_NBYTES


def numbers_to_json(values: Any) -> dict[str, str]:
    """Convert an array or number, bit by bit. Equal numbers are stored once."""
    array = np.asarray(values)
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.size and flat.tobytes() == flat[:1].tobytes() * flat.size:
        flat = flat[:1]
    return {"dtype": array.dtype.str, "bytes": b64encode(flat.tobytes()).decode()}


def numbers_from_json(said: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Read what :func:`numbers_to_json` wrote."""
    dtype = np.dtype(str(said["dtype"]))
    if dtype.kind not in _NUMBER_KINDS:
        raise ValueError(f"{dtype} is not a dtype of numbers")
    flat = np.frombuffer(b64decode(said["bytes"], validate=True), dtype)
    if flat.size == 1:
        return np.full(shape, flat[0], dtype)
    return flat.reshape(shape).copy()


#: The numbers that describe each kind of space.
_NUMBERS: dict[type[spaces.Space[Any]], tuple[str, ...]] = {
    spaces.Box: ("low", "high"),
    spaces.Discrete: ("n", "start"),
    spaces.MultiBinary: (),
    spaces.MultiDiscrete: ("nvec", "start"),
}


def space_to_json(owner: str, space: spaces.Space[Any]) -> dict[str, Any]:
    """Convert a space. ``owner`` is the buffer's class, for errors."""
    if type(space) is spaces.Dict:
        return {"kind": "Dict", "parts": [[key, space_to_json(owner, part)] for key, part in space.spaces.items()]}
    if type(space) not in _NUMBERS:
        allowed = "a checkpoint can hold Box, Discrete, MultiDiscrete, MultiBinary, and Dict spaces of these"
        raise ParameterError(owner, "space", space, allowed, "save_replay_buffer of the model pickles any.")
    shape = {} if type(space) is spaces.Discrete else {"shape": [int(axis) for axis in space.shape or ()]}
    numbers = {name: numbers_to_json(getattr(space, name)) for name in _NUMBERS[type(space)]}
    return {"kind": type(space).__name__, **shape, **numbers}


def _space(said: Any) -> spaces.Space[Any]:
    if said["kind"] == "Dict":
        # An OrderedDict keeps the saved order: gymnasium sorts the keys of other mappings.
        return spaces.Dict(OrderedDict((str(key), _space(part)) for key, part in said["parts"]))
    kind = {kind.__name__: kind for kind in _NUMBERS}[said["kind"]]
    shape = () if kind is spaces.Discrete else tuple(said["shape"])
    if kind is spaces.MultiBinary:
        return spaces.MultiBinary(shape if len(shape) != 1 else shape[0])
    first, second = (numbers_from_json(said[name], shape) for name in _NUMBERS[kind])
    dtype = first.dtype.type
    if kind is spaces.Box:
        return spaces.Box(first, second, shape, dtype)
    if kind is spaces.Discrete:
        # Discrete has a dtype since gymnasium 1.2.2; before that, it is this one.
        other: dict[str, Any] = {} if dtype is np.int64 else {"dtype": dtype}
        return spaces.Discrete(first.item(), start=second.item(), **other)
    return spaces.MultiDiscrete(first, dtype=dtype, start=second)


def to_json(owner: str, name: str, value: Any) -> Any:
    """Convert an argument of the constructor of ``owner``."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic) and can_hold(value):
        return value.item()
    if isinstance(value, np.ndarray) and can_hold(value):
        return {"array": {"shape": list(value.shape), **numbers_to_json(value)}}
    if isinstance(value, spaces.Space):
        return {"space": space_to_json(owner, value)}
    if isinstance(value, CodecSpec):
        return {"codec": value.to_json()}
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, (np.generic, bool, int, float))):
        return {"dtype": np.dtype(value).str}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping) and all(isinstance(key, (bool, int, float, str)) for key in value):
        return {"mapping": [[key, to_json(owner, name, part)] for key, part in value.items()]}
    if isinstance(value, (tuple, list)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [to_json(owner, name, part) for part in value]}
    raise ParameterError(owner, name, value, "a checkpoint cannot hold it", "save_replay_buffer of the model can.")


def _exact(owner: str, name: str, value: Any) -> Any:
    """Convert an attribute of ``owner`` so that :func:`from_json` returns the same types and bits, or refuse it."""
    # Exact types: a subclass, such as an IntEnum or numpy's float64, would be read as its base class.
    kind = type(value)
    if value is None or kind in (bool, float, str) or (kind is int and abs(value) < _MAX_INT):
        return value
    if isinstance(value, np.generic) and can_hold(value):
        return {"number": numbers_to_json(value)}
    if kind is np.ndarray and can_hold(value):
        return {"array": {"shape": list(value.shape), **numbers_to_json(value)}}
    if kind in (dict, OrderedDict):  # Stable-Baselines3 keeps last observations as OrderedDict
        pairs = [[_exact(owner, name, key), _exact(owner, name, part)] for key, part in value.items()]
        return {"mapping" if kind is dict else "ordered": pairs}
    if kind in (list, tuple):
        return {kind.__name__: [_exact(owner, name, part) for part in value]}
    if kind is int:  # repr() of it may fail, too
        allowed = f"it must have at most {_MAX_DIGITS} digits"
        raise ParameterError(owner, name, f"an int of {value.bit_length()} bits", allowed, _EXACT_HINT)
    raise ParameterError(owner, name, value, _EXACT_TYPES, _EXACT_HINT)


def from_json(said: Any, nbytes: int = 0) -> Any:
    """Read what :func:`to_json` or :func:`infos_state` wrote to files of this size."""
    try:
        if (claimed := _claimed_nbytes(said)) > _room(nbytes):
            raise StateError(f"arrays and spaces of {claimed:,} bytes are claimed, the files have {nbytes:,} bytes")
        return _value(said)
    except (KeyError, TypeError, ValueError, OverflowError, AssertionError, SyntaxError, ExtraBuffersError) as error:
        raise StateError(f"an argument cannot be read ({type(error).__name__}: {error})") from None


def _room(nbytes: int) -> int:
    return max(_ROOM_NBYTES, _ROOM_RATIO * nbytes)


def _claimed_nbytes(said: Any) -> int:
    """The size of all arrays in a JSON form, computed without making one."""
    parts = list(said.values()) if isinstance(said, dict) else said if isinstance(said, list) else []
    own = 0
    if isinstance(said, dict) and "shape" in said:
        if not isinstance(said["shape"], list) or not all(type(axis) is int and axis >= 0 for axis in said["shape"]):
            raise ValueError(f"an invalid shape: {said['shape']!r}")
        kinds = [part["dtype"] for part in (said, *parts) if isinstance(part, dict) and "dtype" in part]
        own = prod(said["shape"]) * sum(np.dtype(str(kind)).itemsize for kind in kinds or ("u1",))
    return own + sum(map(_claimed_nbytes, parts))


def _value(said: Any) -> Any:
    if not isinstance(said, dict):
        return said
    if len(said) != 1:
        raise ValueError(f"{said!r}")
    ((kind, content),) = said.items()
    return _VALUES[kind](content)


_VALUES: dict[str, Callable[[Any], Any]] = {
    "array": lambda said: numbers_from_json(said, tuple(said["shape"])),
    "space": _space,
    "codec": CodecSpec.from_json,
    "dtype": lambda said: np.dtype(str(said)),
    "list": lambda said: [_value(part) for part in said],
    "mapping": lambda said: {_value(key): _value(part) for key, part in said},
    "number": lambda said: numbers_from_json(said, ())[()],
    "ordered": lambda said: OrderedDict((_value(key), _value(part)) for key, part in said),
    "tuple": lambda said: tuple(_value(part) for part in said),
}


def infos_state(owner: str, infos: NDArray[Any]) -> State:
    """The state of an array of info dictionaries: a line of JSON for each."""
    try:
        forms = [_exact(owner, "infos", info) if info else None for info in infos.reshape(-1).tolist()]
    except RecursionError:
        problem = "one contains itself, or is too deep"
        raise ParameterError(owner, "infos", "a dict", problem, _EXACT_HINT) from None
    lines = "\n".join("" if form is None else json.dumps(form) for form in forms).encode()
    if (claimed := _claimed_nbytes(forms)) > _room(len(lines)):
        allowed = f"at most {_room(len(lines)):,} can be loaded from a file of this size"
        raise ParameterError(owner, "infos", f"arrays of {claimed:,} bytes", allowed, _EXACT_HINT)
    return State({}, {"lines": np.frombuffer(lines, np.uint8)})


def infos_from(state: State, shape: tuple[int, ...]) -> NDArray[Any]:
    """Read what :func:`infos_state` wrote."""
    content = state.array("lines", np.uint8, None).tobytes()
    forms = [json.loads(line) if line else {"mapping": []} for line in content.decode().split("\n")]
    infos = from_json({"list": forms}, len(content))
    if len(infos) != prod(shape) or not all(type(info) is dict for info in infos):
        raise StateError(f"there are {len(infos)} infos, or some are not dictionaries")
    return np.array(infos, dtype=object).reshape(shape)

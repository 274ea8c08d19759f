"""Arguments of constructors as JSON, so that a buffer is built again by the code that built it."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from sb3_extra_buffers.checkpoints import StateError
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.compressed.space_json import (
    can_hold,
    numbers_from_json,
    numbers_to_json,
    space_from_json,
    space_to_json,
)
from sb3_extra_buffers.errors import ExtraBuffersError, ParameterError


def to_json(owner: str, name: str, value: Any) -> Any:
    """A form that JSON can hold and :func:`from_json` reads back.

    :param owner: the buffer's class, for the error
    :param name: of the argument
    :param value: what was given for it
    """
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


def from_json(said: Any) -> Any:
    """Rebuild what :func:`to_json` or :func:`to_exact_json` wrote."""
    if not isinstance(said, dict):
        return said
    if len(said) != 1:
        raise StateError(f"an argument is {said!r}")
    ((kind, content),) = said.items()
    try:
        return _KINDS[kind](content)
    except (KeyError, TypeError, ValueError, OverflowError, SyntaxError, ExtraBuffersError) as error:
        raise StateError(f"an argument is {said!r} ({type(error).__name__}: {error})") from None


_KINDS: dict[str, Callable[[Any], Any]] = {
    "array": lambda said: numbers_from_json(said, tuple(said["shape"])),
    "space": space_from_json,
    "codec": CodecSpec.from_json,
    "dtype": lambda said: np.dtype(str(said)),
    "list": lambda said: [from_json(part) for part in said],
    "mapping": lambda said: {from_json(key): from_json(part) for key, part in said},
    "number": lambda said: numbers_from_json(said, ())[()],
    "ordered": lambda said: OrderedDict((from_json(key), from_json(part)) for key, part in said),
    "tuple": lambda said: tuple(from_json(part) for part in said),
}

"""Position and length of one payload in a :class:`RawBuffer`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sb3_extra_buffers.errors import ParameterError

_OWNER = "arr_config_length"


@dataclass(frozen=True)
class SlotMetadata:
    """Position and parts of one payload. Offsets of the parts are relative to its first byte.

    :param byte_start: position of the payload in its buffer, in bytes
    :param pos_runs: offset of the run lengths, in bytes
    :param pos_elem: offset of the elements, in bytes
    :param run_length: number of runs
    :param payload_bytes: size of the payload, in bytes
    """

    byte_start: int
    pos_runs: int
    pos_elem: int
    run_length: int
    payload_bytes: int


def arr_config_length(arr_configs: Mapping[str, Any]) -> int:
    """Number of elements of a flattened observation.

    :param arr_configs: has ``"size"``, or else ``"shape"`` (an integer counts as a shape of one axis)
    """
    for key in ("size", "shape"):
        if arr_configs.get(key) is not None:
            return _count(key, arr_configs[key])
    allowed = "it must say how long the observation is, under the key 'size' or 'shape'"
    raise ParameterError(_OWNER, "arr_configs", dict(arr_configs), allowed, 'For example: {"size": 28224}.')


def _count(key: str, value: object) -> int:
    # Text is a sequence, too, but not a shape.
    if key == "shape" and isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        axes = list(value)
    else:
        axes = [value]
    if not all(isinstance(axis, (int, np.integer)) and not isinstance(axis, bool) and axis >= 0 for axis in axes):
        what = "a number of elements" if key == "size" else "a number of elements or a sequence of axes"
        raise ParameterError(_OWNER, f"arr_configs[{key!r}]", value, f"it must be {what}, none of them negative")
    return math.prod(int(axis) for axis in axes)

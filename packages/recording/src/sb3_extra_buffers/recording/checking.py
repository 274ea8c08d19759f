"""What a file says about a recording is checked before anybody relies on it: whoever makes one can say anything.

Checksums tell that nothing has changed since it was written, not that who wrote it told the truth.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import ArrayFile
from sb3_extra_buffers.errors import FileDamagedError
from sb3_extra_buffers.recording.blocks import most_frames
from sb3_extra_buffers.recording.images import CHANNELS

#: The largest frame that is believed: 16,384 x 16,384 pixels of one byte.
_MAX_FRAME_NBYTES = 1 << 28
_KINDS = "biuf"


def check_recording(file: ArrayFile, said: dict[str, Any]) -> None:
    """Raise if a recording cannot be as its file says.

    :param file: its arrays
    :param said: its metadata
    """
    problem = _problem(file, said)
    if problem:
        raise FileDamagedError(str(file.path), (problem,), "It was not written by save(), or by another version.")


def _problem(file: ArrayFile, said: dict[str, Any]) -> str:
    for name, least in (("steps", 0), ("max_size", 1)):
        if not _is_count(said.get(name), least):
            return f"its {name} are said to be {said.get(name)!r}"
    if not isinstance(said.get("begins_whole"), bool) or not isinstance(said.get("recorded_by"), str):
        return "it does not say how it was recorded"
    for name in ("rewards", "actions", "dones"):
        if name not in file or not file[name].ndim:
            return f"it has no {name}"
    count = len(file["rewards"])
    columns = sorted(name for name in file if name == "features" or name.startswith("features."))
    if any(not file[name].ndim or len(file[name]) != count for name in ("actions", "dones", *columns)):
        return "its arrays are not of one length"
    if file["rewards"].ndim != 1 or file["dones"].shape != (count,) or file["dones"].dtype != np.bool_:
        return "its rewards or its ends are no column"
    if columns not in ([], ["features"], sorted(f"features.{number}" for number in range(len(columns)))):
        return f"its features are called {columns}"
    problem = _problem_of_requests(file["actions"], said["asked"]) if "asked" in said else ""
    if problem:
        return problem
    if "frames" not in said:
        return "it does not say whether it has frames"
    return "" if said["frames"] is None else _problem_of_frames(file, said["frames"], count)


def _problem_of_requests(actions: NDArray[Any], said: Any) -> str:
    if not isinstance(said, dict) or not {"channels", "action_dtype", "action_shape"} <= said.keys():
        return "it does not say what was asked for"
    if said["channels"] not in CHANNELS:
        return f"its channels are said to be {said['channels']!r}"
    if said["action_dtype"] not in (None, actions.dtype.name):
        return f"its actions are of {actions.dtype}, but {said['action_dtype']!r} was asked for"
    if said["action_shape"] not in (None, list(actions.shape[1:])):
        return f"its actions have the shape {actions.shape[1:]}, but {said['action_shape']!r} was asked for"
    return ""


def _problem_of_frames(file: ArrayFile, said: Any, count: int) -> str:
    if not isinstance(said, dict) or not {"shape", "dtype", "codec", "per_block"} <= said.keys():
        return "it does not say what its frames are"
    shape, dtype, per_block = said["shape"], said["dtype"], said["per_block"]
    if not isinstance(shape, list) or len(shape) != 3 or not all(_is_count(axis, 1) for axis in shape):
        return f"its frames have the shape {shape!r}"
    if not isinstance(dtype, str) or dtype not in np.sctypeDict or np.dtype(dtype).kind not in _KINDS:
        return f"its frames are of {dtype!r}"
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    if nbytes > _MAX_FRAME_NBYTES:
        return f"its frames have {nbytes} bytes each"
    if not _is_count(per_block, 1) or per_block > most_frames(nbytes):
        return f"{per_block!r} of its frames are in a block"
    if not isinstance(said["codec"], dict):
        return "it does not say which codec its frames have"
    blocks = -(-count // per_block)
    expected = {"ends": np.int64, "checksums": np.uint32, "prepared": np.uint8}
    for name, kind in expected.items():
        array = file.get(f"frames.{name}")
        if array is None or array.dtype != kind or array.shape != (blocks,):
            return f"the {name} of its {blocks} blocks of frames are not there"
    payloads, ends = file.get("frames.payloads"), file["frames.ends"]
    if payloads is None or payloads.dtype != np.uint8 or payloads.ndim != 1:
        return "its frames are not there"
    edges = np.concatenate([[0], ends, [len(payloads)]])
    return "" if (edges[1:] >= edges[:-1]).all() else "its blocks of frames do not lie one behind the other"


def _is_count(value: Any, least: int) -> bool:
    return type(value) is int and least <= value < 1 << 62

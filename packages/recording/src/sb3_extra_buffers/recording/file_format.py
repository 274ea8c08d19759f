"""The file of a recording: metadata, writing, and validation of what a file claims.

Rewards, actions, ends and features are stored as arrays, frames as compressed blocks.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.checkpoints import ArrayFile
from sb3_extra_buffers.checkpoints.atomic import write_error
from sb3_extra_buffers.codecs import CodecLike
from sb3_extra_buffers.errors import BufferStateError, FileDamagedError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.recording.frame_blocks import FrameBlocks, frames_per_block
from sb3_extra_buffers.recording.frame_format import CHANNELS
from sb3_extra_buffers.recording.protocol import Recording
from sb3_extra_buffers.stores import parse_request, strongest_codec

#: The kind and the version that the file of a recording declares.
KIND = "recording"
#: The array of all compressed blocks of frames.
PAYLOADS = "frames.payloads"
FORMAT_VERSION = 1
#: The largest frame that a file may claim: 16,384 x 16,384 pixels of one byte.
_MAX_FRAME_NBYTES = 1 << 28
#: Bytes that the codec of the frames is chosen by.
_SAMPLE_NBYTES = 1 << 18


@dataclass(frozen=True)
class Metadata:
    """Metadata given when a recording was created. A buffer loaded from a file gets the same.

    :param channels: axis of the channels in added frames
    :param action_dtype: dtype of the actions; ``None``: set by the first action
    :param action_shape: shape of one action; ``None``: set by the first action
    """

    channels: str = "auto"
    action_dtype: np.dtype[Any] | None = None
    action_shape: tuple[int, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the values stored in a file."""
        dtype = None if self.action_dtype is None else self.action_dtype.name
        shape = None if self.action_shape is None else list(self.action_shape)
        return {"channels": self.channels, "action_dtype": dtype, "action_shape": shape}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Metadata:
        """Create metadata from validated values of a file."""
        dtype, shape = values["action_dtype"], values["action_shape"]
        return cls(
            values["channels"],
            None if dtype is None else np.dtype(dtype),
            None if shape is None else tuple(shape),
        )


class _Savable(Recording, Protocol):
    begins_whole: bool

    @property
    def asked(self) -> Metadata: ...

    @property
    def steps(self) -> int: ...

    @property
    def frame_dtype(self) -> np.dtype[Any]: ...

    @property
    def max_size(self) -> int: ...


def write_recording(
    recording: _Savable, path: str | os.PathLike[str], compression_method: CodecLike, progress: bool
) -> int:
    """Write a recording to a file and return the size of the file.

    :param recording: the recording
    :param path: the file
    :param compression_method: codec of the frames, or ``"auto"``
    :param progress: whether to show a progress bar
    """
    owner = type(recording).__name__
    if not len(recording):
        raise BufferStateError(owner, "save", "nothing was recorded", "Record something first.")
    clip = recording.without_frames()
    arrays: dict[str, NDArray[Any]] = {"rewards": clip.rewards, "actions": clip.actions, "dones": clip.dones}
    arrays |= _feature_arrays(clip.features)
    metadata: dict[str, Any] = {
        "recording_version": FORMAT_VERSION,
        "recorded_by": owner,
        "steps": recording.steps,
        "begins_whole": recording.begins_whole,
        "max_size": recording.max_size,
        "asked": recording.asked.to_json(),
        "frames": None,
    }
    codec = parse_request(compression_method)
    if recording.frame_shape is not None:
        if codec is None:
            codec = strongest_codec(_sample(recording))
        blocks = FrameBlocks(codec, recording.frame_shape, recording.frame_dtype)
        arrays |= _frame_arrays(recording, blocks, progress)
        metadata["frames"] = {
            "shape": list(recording.frame_shape),
            "dtype": recording.frame_dtype.name,
            "codec": blocks.spec.to_json(),
            "per_block": blocks.frames,
        }
    try:
        return checkpoints.write(path, arrays, metadata, KIND)
    except OSError as error:
        hint = "" if Path(path).parent.is_dir() else "Make the folder first."
        raise write_error(path, f"{owner}.save", error, hint) from error


def _feature_arrays(features: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    if features is None:
        return {}
    if features.dtype.names is None:
        return {"features": features}
    return {f"features.{name}": features[name] for name in features.dtype.names}


def read_features(file: ArrayFile) -> NDArray[Any] | None:
    """Return the features of a validated file, structured if they have several dtypes; ``None`` if there are none."""
    if "features" in file:
        return file["features"]
    columns = {name.removeprefix("features."): file[name] for name in file if name.startswith("features.")}
    if not columns:
        return None
    order = sorted(columns, key=int)
    found = np.empty(len(columns["0"]), [(name, columns[name].dtype) for name in order])
    for name in order:
        found[name] = columns[name]
    return found


def _sample(recording: _Savable) -> NDArray[np.uint8]:
    """The bytes of the first frames, by which the codec is chosen."""
    assert recording.frame_shape is not None
    count = max(1, _SAMPLE_NBYTES // (math.prod(recording.frame_shape) * recording.frame_dtype.itemsize))
    frames = recording.read(0, min(count, len(recording))).frames
    assert frames is not None
    return np.ascontiguousarray(frames).reshape(-1).view(np.uint8)


def _frame_arrays(recording: _Savable, blocks: FrameBlocks, progress: bool) -> dict[str, NDArray[Any]]:
    payloads, prepared = [], []
    with progress_bar("saving", len(recording), progress) as advance:
        for start in range(0, len(recording), blocks.frames):
            frames = recording.read(start, min(start + blocks.frames, len(recording))).frames
            assert frames is not None
            payload, preparation = blocks.encode(frames)
            payloads.append(payload)
            prepared.append(preparation)
            advance(len(frames))
    return {
        PAYLOADS: np.concatenate(payloads),
        "frames.ends": np.cumsum([len(payload) for payload in payloads], dtype=np.int64),
        "frames.checksums": np.array([crc32(payload) for payload in payloads], np.uint32),
        "frames.prepared": np.array(prepared, np.uint8),
    }


def validate(file: ArrayFile, metadata: dict[str, Any]) -> None:
    """Raise if metadata and arrays of a file contradict each other.

    Checksums detect damage, not a wrong file: anyone can write a file with correct checksums.

    :param file: arrays of the recording
    :param metadata: metadata of the file
    """
    problem = _problem(file, metadata)
    if problem:
        raise FileDamagedError(str(file.path), (problem,), "It was not written by save(), or by another version.")


def _problem(file: ArrayFile, metadata: dict[str, Any]) -> str:
    for name, least in (("steps", 0), ("max_size", 1)):
        if not _is_count(metadata.get(name), least):
            return f"invalid {name}: {metadata.get(name)!r}"
    if not isinstance(metadata.get("begins_whole"), bool) or not isinstance(metadata.get("recorded_by"), str):
        return "begins_whole or recorded_by is missing or invalid"
    for name in ("rewards", "actions", "dones"):
        if name not in file or not file[name].ndim:
            return f"the array {name} is missing"
    count = len(file["rewards"])
    columns = sorted(name for name in file if name == "features" or name.startswith("features."))
    if any(not file[name].ndim or len(file[name]) != count for name in ("actions", "dones", *columns)):
        return "the arrays have different lengths"
    if file["rewards"].ndim != 1 or file["dones"].shape != (count,) or file["dones"].dtype != np.bool_:
        return "rewards or dones have an invalid shape or dtype"
    if columns not in ([], ["features"], sorted(f"features.{number}" for number in range(len(columns)))):
        return f"invalid names of features: {columns}"
    problem = _problem_of_request(file["actions"], metadata["asked"]) if "asked" in metadata else ""
    if problem:
        return problem
    if "frames" not in metadata:
        return "the entry frames is missing"
    return "" if metadata["frames"] is None else _problem_of_frames(file, metadata["frames"], count)


def _problem_of_request(actions: NDArray[Any], values: Any) -> str:
    if not isinstance(values, dict) or not {"channels", "action_dtype", "action_shape"} <= values.keys():
        return "the entry asked is incomplete"
    if values["channels"] not in CHANNELS:
        return f"invalid channels: {values['channels']!r}"
    if values["action_dtype"] not in (None, actions.dtype.name):
        return f"actions have the dtype {actions.dtype}, action_dtype is {values['action_dtype']!r}"
    if values["action_shape"] not in (None, list(actions.shape[1:])):
        return f"actions have the shape {actions.shape[1:]}, action_shape is {values['action_shape']!r}"
    return ""


def _problem_of_frames(file: ArrayFile, values: Any, count: int) -> str:
    if not isinstance(values, dict) or not {"shape", "dtype", "codec", "per_block"} <= values.keys():
        return "the entry frames is incomplete"
    shape, dtype, per_block = values["shape"], values["dtype"], values["per_block"]
    if not isinstance(shape, list) or len(shape) != 3 or not all(_is_count(axis, 1) for axis in shape):
        return f"invalid shape of frames: {shape!r}"
    if not isinstance(dtype, str) or dtype not in np.sctypeDict or np.dtype(dtype).kind not in "biuf":
        return f"invalid dtype of frames: {dtype!r}"
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    if nbytes > _MAX_FRAME_NBYTES:
        return f"frames of {nbytes} bytes are too large"
    if not _is_count(per_block, 1) or per_block > frames_per_block(nbytes):
        return f"invalid number of frames per block: {per_block!r}"
    if not isinstance(values["codec"], dict):
        return "the codec of the frames is missing"
    blocks = -(-count // per_block)
    for name, kind in (("ends", np.int64), ("checksums", np.uint32), ("prepared", np.uint8)):
        array = file.get(f"frames.{name}")
        if array is None or array.dtype != kind or array.shape != (blocks,):
            return f"the array frames.{name} of {blocks} blocks is missing or invalid"
    payloads, ends = file.get(PAYLOADS), file["frames.ends"]
    if payloads is None or payloads.dtype != np.uint8 or payloads.ndim != 1:
        return "the array frames.payloads is missing or invalid"
    edges = np.concatenate([[0], ends, [len(payloads)]])
    return "" if (edges[1:] >= edges[:-1]).all() else "the blocks of frames are not in order"


def _is_count(value: Any, least: int) -> bool:
    return type(value) is int and least <= value < 1 << 62

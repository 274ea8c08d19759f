"""A recording becomes a file: small arrays as they are, frames in blocks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.codecs import CodecLike
from sb3_extra_buffers.errors import BufferStateError, FileWriteError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.recording.asked import Asked
from sb3_extra_buffers.recording.blocks import FrameBlocks
from sb3_extra_buffers.recording.clip import Clip
from sb3_extra_buffers.recording.recording import Recording
from sb3_extra_buffers.stores import PREFERENCES, parse_request

#: What such a file says that it is.
KIND = "recording"
#: How its content is arranged.
FORMAT_VERSION = 1


class _Savable(Recording, Protocol):
    """A recording that says everything about itself."""

    begins_whole: bool

    @property
    def asked(self) -> Asked: ...

    @property
    def steps(self) -> int: ...

    @property
    def frame_dtype(self) -> np.dtype[Any]: ...

    @property
    def max_size(self) -> int: ...

    def without_frames(self) -> Clip: ...


def save_recording(
    recording: _Savable, path: str | os.PathLike[str], compression_method: CodecLike, progress: bool
) -> int:
    """Write a recording to a file.

    :param recording: what to write
    :param path: where to
    :param compression_method: a codec for the frames, or ``"auto"``
    :param progress: whether to show a bar while frames are compressed
    :return: the size of the file
    """
    owner = type(recording).__name__
    if not len(recording):
        raise BufferStateError(owner, "save", "nothing was recorded", "Record something first.")
    clip = recording.without_frames()
    arrays: dict[str, NDArray[Any]] = {"rewards": clip.rewards, "actions": clip.actions, "dones": clip.dones}
    metadata: dict[str, Any] = {
        "recording_version": FORMAT_VERSION,
        "recorded_by": owner,
        "steps": recording.steps,
        "begins_whole": recording.begins_whole,
        "max_size": recording.max_size,
        "asked": recording.asked.to_json(),
        "frames": None,
    }
    arrays |= feature_arrays(clip.features)
    codec = parse_request(compression_method) or PREFERENCES["memory"].codec
    if recording.frame_shape is not None:
        assert codec is not None
        blocks = FrameBlocks(codec, recording.frame_shape, recording.frame_dtype)
        arrays |= _encoded(recording, blocks, progress)
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
        raise FileWriteError(str(path), f"{owner}.save", error.strerror or str(error), hint) from error


def feature_arrays(features: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    """Features as a file can hold them: structured ones column by column."""
    if features is None:
        return {}
    if features.dtype.names is None:
        return {"features": features}
    return {f"features.{name}": features[name] for name in features.dtype.names}


def _encoded(recording: _Savable, blocks: FrameBlocks, progress: bool) -> dict[str, NDArray[Any]]:
    payloads, prepared = [], []
    with progress_bar("saving", len(recording), progress) as advance:
        for start in range(0, len(recording), blocks.frames):
            frames = recording.read(start, min(start + blocks.frames, len(recording))).frames
            assert frames is not None
            payload, how = blocks.encode(frames)
            payloads.append(payload)
            prepared.append(how)
            advance(len(frames))
    return {
        "frames.payloads": np.concatenate(payloads),
        "frames.ends": np.cumsum([len(payload) for payload in payloads], dtype=np.int64),
        "frames.checksums": np.array([crc32(payload) for payload in payloads], np.uint32),
        "frames.prepared": np.array(prepared, np.uint8),
    }

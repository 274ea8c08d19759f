"""``SavedRecording``: a recording in a file, read where it is looked at."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import ArrayFile, open_arrays
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.errors import BufferStateError, FileContentError, FileDamagedError, PayloadError
from sb3_extra_buffers.recording.asked import Asked
from sb3_extra_buffers.recording.blocks import FrameBlocks
from sb3_extra_buffers.recording.checking import check_recording
from sb3_extra_buffers.recording.clip import Clip
from sb3_extra_buffers.recording.memory import NO_FRAMES, MemoryUse, raw_nbytes
from sb3_extra_buffers.recording.reading import Readable
from sb3_extra_buffers.recording.saving import FORMAT_VERSION, KIND


class SavedRecording(Readable):
    """What was saved, without loading it: frames are decoded when they are read, some at a time.

    It reads like the buffer that it was saved from. To go on recording, ``RecordBuffer.load`` makes a buffer of it.

    :param path: which file
    :param verify: whether to read and check everything at once; otherwise frames are checked when they are read
    """

    def __init__(self, path: str | os.PathLike[str], verify: bool = False) -> None:
        file = open_arrays(path, KIND, verify)
        self._file: ArrayFile | None = file
        #: Which file it is.
        self.path = file.path
        said = _checked_metadata(file)
        self._steps, self._size = int(said["steps"]), int(said["max_size"])
        self.begins_whole = bool(said["begins_whole"])
        # Earlier files do not say it: then nothing was.
        self._asked = Asked.from_json(said["asked"]) if "asked" in said else Asked()
        #: The class that recorded it.
        self.recorded_by: str = said["recorded_by"]
        self.rewards, self.actions, self.dones = (file[name] for name in ("rewards", "actions", "dones"))
        self.features = _features(file)
        self.frame_shape, self._dtype = None, np.dtype(np.uint8)
        self._blocks: FrameBlocks | None = None
        if said["frames"] is not None:
            height, width, channels = said["frames"]["shape"]
            self.frame_shape, self._dtype = (height, width, channels), np.dtype(said["frames"]["dtype"])
            codec = CodecSpec.from_json(said["frames"]["codec"])
            self._blocks = FrameBlocks(codec, self.frame_shape, self._dtype, said["frames"]["per_block"])
        self._newest: tuple[int, NDArray[Any]] | None = None

    @property
    def asked(self) -> Asked:
        """What was asked for when the buffer was made that it was saved from."""
        return self._asked

    @property
    def steps(self) -> int:
        """How many steps were ever recorded."""
        return self._steps

    @property
    def max_size(self) -> int:
        """How many steps the buffer keeps that it was saved from."""
        return self._size

    @property
    def frame_dtype(self) -> np.dtype[Any]:
        """Of the elements of a frame."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Size of the file."""
        return self._open("tell its size").nbytes

    @property
    def memory(self) -> MemoryUse:
        """What the frames take in the file, and what they would take as they are."""
        file = self._open("tell what its frames take")
        if self.frame_shape is None or self._blocks is None:
            return NO_FRAMES
        raw = raw_nbytes(len(self), self.frame_shape, self._dtype)
        index = sum(array.nbytes for name, array in file.items() if name.startswith("frames."))
        stored = file["frames.payloads"].nbytes
        return MemoryUse(raw, stored, index - stored, f"{self._blocks.spec}, {self._blocks.frames} frames at a time")

    def __len__(self) -> int:
        return len(self.rewards)

    def close(self) -> None:
        """Let go of the file. Nothing can be read any more."""
        self._file = self._newest = None

    def verify(self) -> None:
        """Read everything and compare it with its checksums. The error names what is damaged."""
        self._open("verify").verify()

    def __enter__(self) -> SavedRecording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SavedRecording {self.path}: {len(self):,} steps{', closed' if self._file is None else ''}>"

    def _open(self, asked: str) -> ArrayFile:
        if self._file is None:
            hint = f"Open it again: load({str(self.path)!r})."
            raise BufferStateError("SavedRecording", asked, "its file was closed", hint)
        return self._file

    def _gather(self, steps: NDArray[np.int64], frames: bool = True) -> Clip:
        file = self._open("read")
        images = None if self._blocks is None or not frames else self._frames(file, self._blocks, steps)
        features = None if self.features is None else self.features[steps]
        return Clip(images, self.rewards[steps], self.actions[steps], features, self.dones[steps])

    def _frames(self, file: ArrayFile, blocks: FrameBlocks, steps: NDArray[np.int64]) -> NDArray[Any]:
        assert self.frame_shape is not None
        found = np.empty((len(steps), *self.frame_shape), self._dtype)
        numbers, inside = np.divmod(steps, blocks.frames)
        for number in np.unique(numbers).tolist():
            wanted = numbers == number
            found[wanted] = self._block(file, blocks, number)[inside[wanted]]
        return found

    def _block(self, file: ArrayFile, blocks: FrameBlocks, number: int) -> NDArray[Any]:
        """A block of frames. The newest is kept: who reads step by step decodes it once."""
        if self._newest is None or self._newest[0] != number:
            ends, count = file["frames.ends"], min(blocks.frames, len(self) - number * blocks.frames)
            payload = file["frames.payloads"][ends[number - 1] if number else 0 : ends[number]]
            if crc32(payload) != file["frames.checksums"][number]:
                raise FileDamagedError(str(self.path), (f"the frames of block {number}",))
            try:
                self._newest = number, blocks.decode(payload, count, int(file["frames.prepared"][number]))
            except PayloadError as error:
                raise FileDamagedError(str(self.path), (f"the frames of block {number}: {error}",)) from error
        return self._newest[1]


def _checked_metadata(file: ArrayFile) -> dict[str, Any]:
    said = file.metadata if isinstance(file.metadata, dict) else {}
    version = said.get("recording_version")
    if version != FORMAT_VERSION:
        asked, hint = (
            f"version {FORMAT_VERSION} of a recording",
            "Run: pip install --upgrade sb3-extra-buffers-recording",
        )
        raise FileContentError(str(file.path), asked, f"version {version}", hint)
    check_recording(file, said)
    return said


def _features(file: ArrayFile) -> NDArray[Any] | None:
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


def load(path: str | os.PathLike[str], verify: bool = False) -> SavedRecording:
    """Open a recording that was saved. Whatever its size, only a few bytes of it are read.

    :param path: which file
    :param verify: whether to read and check everything at once; otherwise frames are checked when they are read
    """
    return SavedRecording(path, verify)

"""``SavedRecording``: a recording in a file, decoded while it is read."""

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
from sb3_extra_buffers.errors.install import install_command
from sb3_extra_buffers.recording.base_recording import BaseRecording
from sb3_extra_buffers.recording.file_format import FORMAT_VERSION, KIND, PAYLOADS, Metadata, read_features, validate
from sb3_extra_buffers.recording.frame_blocks import FrameBlocks
from sb3_extra_buffers.recording.protocol import Clip
from sb3_extra_buffers.recording.statistics import NO_FRAMES, MemoryUse, raw_nbytes


class SavedRecording(BaseRecording):
    """A saved recording that is not loaded: frames are decoded when they are read, one block at a time.

    It reads like the buffer that it was saved from. ``RecordBuffer.load`` makes a buffer of it to continue recording.

    :param path: the file
    :param verify: whether to read and check the whole file now; otherwise frames are checked when they are read
    """

    def __init__(self, path: str | os.PathLike[str], verify: bool = False) -> None:
        file = open_arrays(path, KIND, verify)
        for name in file:
            if not verify and name != PAYLOADS:  # these have a checksum per block, which is compared when it is read
                file.check(name)
        self._file: ArrayFile | None = file
        #: Path of the file.
        self.path = file.path
        metadata = _validated_metadata(file)
        self._steps, self._size = int(metadata["steps"]), int(metadata["max_size"])
        self.begins_whole = bool(metadata["begins_whole"])
        # Older files have no such entry.
        self._metadata = Metadata.from_json(metadata["asked"]) if "asked" in metadata else Metadata()
        #: Name of the class that recorded it.
        self.recorded_by: str = metadata["recorded_by"]
        self.rewards, self.actions, self.dones = (file[name] for name in ("rewards", "actions", "dones"))
        self.features = read_features(file)
        self.frame_shape, self._dtype = None, np.dtype(np.uint8)
        self._blocks: FrameBlocks | None = None
        frames = metadata["frames"]
        if frames is not None:
            height, width, channels = frames["shape"]
            self.frame_shape, self._dtype = (height, width, channels), np.dtype(frames["dtype"])
            codec = CodecSpec.from_json(frames["codec"])
            self._blocks = FrameBlocks(codec, self.frame_shape, self._dtype, frames["per_block"])
        #: Number and frames of the block that was decoded last.
        self._decoded: tuple[int, NDArray[Any]] | None = None

    @property
    def asked(self) -> Metadata:
        """Metadata given when the buffer was created that it was saved from."""
        return self._metadata

    @property
    def steps(self) -> int:
        """Number of steps ever recorded."""
        return self._steps

    @property
    def max_size(self) -> int:
        """Number of steps kept by the buffer that it was saved from."""
        return self._size

    @property
    def frame_dtype(self) -> np.dtype[Any]:
        """Dtype of the frames."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Size of the file."""
        return self._open("get the size").nbytes

    @property
    def memory(self) -> MemoryUse:
        """Size of the frames in the file, and their uncompressed size."""
        file = self._open("get the memory use")
        if self.frame_shape is None or self._blocks is None:
            return NO_FRAMES
        raw = raw_nbytes(len(self), self.frame_shape, self._dtype)
        index = sum(array.nbytes for name, array in file.items() if name.startswith("frames."))
        stored = file[PAYLOADS].nbytes
        return MemoryUse(raw, stored, index - stored, f"{self._blocks.spec}, {self._blocks.frames} frames per block")

    def __len__(self) -> int:
        return len(self.rewards)

    def close(self) -> None:
        """Close the file. Nothing can be read afterwards."""
        self._file = self._decoded = None

    def verify(self) -> None:
        """Read the whole file and compare it with its checksums. The error names the damaged parts."""
        self._open("verify").verify()

    def __enter__(self) -> SavedRecording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SavedRecording {self.path}: {len(self):,} steps{', closed' if self._file is None else ''}>"

    def _open(self, action: str) -> ArrayFile:
        if self._file is None:
            hint = f"Open it again: load({str(self.path)!r})."
            raise BufferStateError("SavedRecording", action, "its file was closed", hint)
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
        """Return the frames of a block. The last block is kept, so reading step by step decodes it once."""
        if self._decoded is None or self._decoded[0] != number:
            ends, count = file["frames.ends"], min(blocks.frames, len(self) - number * blocks.frames)
            payload = file[PAYLOADS][ends[number - 1] if number else 0 : ends[number]]
            if crc32(payload) != file["frames.checksums"][number]:
                raise FileDamagedError(str(self.path), (f"the frames of block {number}",))
            try:
                self._decoded = number, blocks.decode(payload, count, int(file["frames.prepared"][number]))
            except PayloadError as error:
                raise FileDamagedError(str(self.path), (f"the frames of block {number}: {error}",)) from error
        return self._decoded[1]


def _validated_metadata(file: ArrayFile) -> dict[str, Any]:
    metadata = file.metadata if isinstance(file.metadata, dict) else {}
    version = metadata.get("recording_version")
    if version != FORMAT_VERSION:
        expected = f"version {FORMAT_VERSION} of a recording"
        hint = f"Run: {install_command('sb3-extra-buffers-recording', upgrade=True)}"
        raise FileContentError(str(file.path), expected, f"version {version}", hint)
    validate(file, metadata)
    return metadata


def load(path: str | os.PathLike[str], verify: bool = False) -> SavedRecording:
    """Open a saved recording. Frames are not read.

    :param path: the file
    :param verify: whether to read and check the whole file now; otherwise frames are checked when they are read
    """
    return SavedRecording(path, verify)

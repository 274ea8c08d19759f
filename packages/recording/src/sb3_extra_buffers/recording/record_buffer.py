"""``RecordBuffer``: records frames, rewards, actions and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CodecLike
from sb3_extra_buffers.recording.base_buffer import BaseRecordBuffer
from sb3_extra_buffers.recording.frame_format import AUTO, FrameFormat
from sb3_extra_buffers.recording.frame_storage import FrameOptions, create_frame_storage
from sb3_extra_buffers.recording.protocol import public
from sb3_extra_buffers.recording.statistics import MemoryUse, raw_nbytes
from sb3_extra_buffers.stores import parse_request


@public
class RecordBuffer(BaseRecordBuffer):
    """Records frames, rewards, actions and features. When it is full, the oldest steps are overwritten.

    :param res: height and width of a frame
    :param ch_num: number of channels of a frame
    :param size: number of steps kept
    :param dtypes: dtypes of the frames, of the rewards, and of each feature; default: ``uint8`` and ``float32``
    :param channels: axis of the channels in added frames: ``"first"``, ``"last"``, or ``"auto"``: decided by the shape
        of each frame
    :param action_dtype: dtype of the actions; ``None``: set by the first action
    :param action_shape: shape of one action; ``None``: set by the first action
    :param compression_method: a codec such as ``"zstd-3"``; ``"auto"`` chooses among the installed codecs, ``"none"``
        keeps frames uncompressed
    :param compression_kwargs: parameters of the codec
    :param layout: ``"frames"`` stores the changes since the previous frame, ``"cells"`` every frame by itself;
        ``"auto"`` chooses
    :param prefer: for the layout ``"frames"``: ``"speed"``, ``"balanced"`` or ``"memory"``; ``None`` means
        ``"balanced"``, which is read in order as fast as ``"speed"`` and takes less memory
    :param threads: threads used to decode a batch; ``None``: chosen automatically
    """

    keeps_frames = True

    def __init__(
        self,
        res: tuple[int, int] = (240, 320),
        ch_num: int = 3,
        size: int = 40_000,
        dtypes: Sequence[Any] | None = None,
        *,
        channels: str = AUTO,
        action_dtype: Any = None,
        action_shape: int | tuple[int, ...] | None = None,
        compression_method: CodecLike = AUTO,
        compression_kwargs: Mapping[str, Any] | None = None,
        layout: str = AUTO,
        prefer: str | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(size, dtypes, action_dtype=action_dtype, action_shape=action_shape)
        self._channels = channels
        codec = parse_request(compression_method, compression_kwargs)
        self._create_storage(res, ch_num, FrameOptions(codec, layout, prefer, threads))

    def _create_storage(self, res: tuple[int, int], ch_num: int, options: FrameOptions) -> None:
        owner = type(self).__name__
        self._format = FrameFormat(owner, res, ch_num, self._channels, self.frame_dtype)
        self.frame_shape = self._format.shape
        self._options = options
        self._storage = create_frame_storage(owner, self._size, self.frame_shape, self.frame_dtype, options)

    @property
    def frames(self) -> Any:
        """All frames in ring order, as an array of shape ``(size, C, H, W)``."""
        return self._storage.channels_first

    @property
    def memory(self) -> MemoryUse:
        """Size of the stored frames, and their uncompressed size."""
        raw, storage = raw_nbytes(len(self), self._format.shape, self.frame_dtype), self._storage
        return MemoryUse(raw, storage.stored_nbytes(len(self)), storage.overhead, storage.codec)

    def reset(self) -> None:
        """Remove all steps."""
        super().reset()
        self._storage.clear()

    def _convert_frame(self, frame: Any) -> NDArray[Any]:
        return self._format.convert(frame)

    def _write_frame(self, index: int, frame: NDArray[Any]) -> None:
        self._storage.write(index, frame)

    def _write_frames(self, first: int, frames: NDArray[Any] | None) -> None:
        assert frames is not None
        self._storage.write_all(first, frames)

    def _read_frames(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        return self._storage.read(indices)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        storage, options = state.pop("_storage"), state.pop("_options")
        del state["_format"]
        return {**state, "storage": storage.state(), "storage_options": options.to_plain()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: state[name] for name in state if name not in ("storage", "storage_options")})
        storage, options = state["storage"], FrameOptions.from_plain(state["storage_options"])
        height, width, channels = state["frame_shape"]
        self._create_storage((height, width), channels, options)
        self._storage.restore(storage)

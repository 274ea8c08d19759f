"""``RecordBuffer``: frames, rewards, actions and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CodecLike
from sb3_extra_buffers.compressed.options import CELLS, StorageOptions
from sb3_extra_buffers.recording.buffers.base import BaseRecordBuffer
from sb3_extra_buffers.recording.images import AUTO, CompressedImages, FrameForm, Images, PlainImages
from sb3_extra_buffers.recording.memory import MemoryUse, raw_nbytes
from sb3_extra_buffers.stores.preferences import BALANCED, SPEED


class RecordBuffer(BaseRecordBuffer):
    """Records what an agent sees, does and gets. When it is full, the oldest steps make room.

    :param res: height and width of a frame
    :param ch_num: channels of a frame
    :param size: how many steps are kept
    :param dtypes: of the frames, of the rewards, and of each feature; by default ``uint8`` and ``float32``
    :param channels: where frames that are added have their channels: ``"first"``, ``"last"``, or ``"auto"``: as the
        shape of each says
    :param action_dtype: of the actions; ``None`` leaves it to the first one
    :param action_shape: of one action; ``None`` leaves it to the first one
    :param compression_method: a codec such as ``"zstd-3"``; ``"auto"`` chooses among those that are installed, and
        ``"none"`` keeps frames as they are
    :param compression_kwargs: parameters of the codec
    :param layout: ``"frames"`` stores what changed since the frame before, ``"cells"`` every frame by itself;
        ``"auto"`` chooses
    :param prefer: for the layout ``"frames"``: ``"speed"``, ``"balanced"`` or ``"memory"``; ``None`` stands for
        ``"balanced"``, which is read in order as fast as ``"speed"`` and takes less
    :param threads: how many threads decode; ``None`` uses as many as pay
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
        owner = type(self).__name__
        self._form, self._channels = FrameForm(owner, res, ch_num, channels, self.frame_dtype), channels
        self.frame_shape = self._form.shape
        options = StorageOptions(
            compression_method=compression_method,
            compression_kwargs=compression_kwargs,
            layout=layout,
            prefer=prefer or (SPEED if layout == CELLS else BALANCED),
            threads=threads,
        )
        options.check(owner, None)
        self._images = _images(owner, self.max_size, self._form, options)

    @property
    def frames(self) -> Any:
        """All frames, in the order of the ring, as an array of shape ``(size, C, H, W)``."""
        return self._images.channels_first

    @property
    def memory(self) -> MemoryUse:
        """What the frames take, and what they would take as they are."""
        raw = raw_nbytes(len(self), self._form.shape, self.frame_dtype)
        images = self._images
        return MemoryUse(raw, images.stored_nbytes(len(self)), images.overhead, images.codec)

    def reset(self) -> None:
        """Forget all steps."""
        super().reset()
        self._images.clear()

    def _fit_frame(self, frame: Any) -> NDArray[Any]:
        return self._form.fit(frame)

    def _write_frame(self, place: int, frame: NDArray[Any]) -> None:
        self._images.write(place, frame)

    def _write_frames(self, first: int, frames: NDArray[Any] | None) -> None:
        assert frames is not None
        self._images.write_all(first, frames)

    def _read_frames(self, places: NDArray[np.int64]) -> NDArray[Any]:
        return self._images.read(places)


def _images(owner: str, size: int, form: FrameForm, options: StorageOptions) -> Images:
    codec = options.codec(None)
    if codec is not None and codec.name == "none" and options.layout in (AUTO, CELLS):
        return PlainImages(size, form.shape, form.dtype)
    return CompressedImages(owner, size, form.shape, form.dtype, options)

"""``FrameFormat``: the shapes in which a frame is accepted, and its conversion to ``(H, W, C)``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ObservationError, ParameterError
from sb3_extra_buffers.recording.casting import cast_exactly, check_integer, is_integer

AUTO, FIRST, LAST = CHANNELS = ("auto", "first", "last")


class FrameFormat:
    """Shape and dtype of frames.

    With ``"last"`` a frame is ``(H, W, C)``, with ``"first"`` ``(C, H, W)``. With ``"auto"`` it may be either, decided
    by its shape; ``"auto"`` is refused if all three axes have the same length. A frame with one channel may also be
    ``(H, W)``.

    :param owner: class of the recording, for errors
    :param res: height and width
    :param ch_num: number of channels
    :param channels: ``"auto"``, ``"first"`` or ``"last"``
    :param dtype: dtype of the frames
    """

    def __init__(self, owner: str, res: Any, ch_num: Any, channels: str, dtype: np.dtype[Any]) -> None:
        self._owner = owner
        sides = tuple(res) if isinstance(res, (tuple, list)) else (res,)
        if len(sides) != 2 or not all(is_integer(side, 1) for side in sides):
            raise ParameterError(owner, "res", res, "it must be height and width, two integers of at least 1")
        height, width, depth = int(sides[0]), int(sides[1]), check_integer(owner, "ch_num", ch_num)
        self.shape = height, width, depth
        self.dtype = dtype
        if channels not in CHANNELS:
            raise ParameterError(owner, "channels", channels, f"it must be one of: {', '.join(CHANNELS)}")
        if channels == AUTO and height == width == depth > 1:
            allowed = f"a frame of shape {self.shape} does not show which axis holds the channels"
            raise ParameterError(owner, "channels", channels, allowed, "Use 'first' or 'last'.")
        self._last = None if channels == FIRST else self.shape
        self._first = None if channels == LAST else (depth, height, width)
        self._flat = (height, width) if depth == 1 else None

    def convert(self, frame: Any) -> NDArray[Any]:
        """Return a contiguous frame of shape ``(H, W, C)``, or raise.

        :param frame: anything numpy can convert to an array
        """
        if type(frame) is np.ndarray and frame.dtype == self.dtype and frame.shape == self._last:
            return np.ascontiguousarray(frame)
        hint = 'dtypes[0] is the dtype of stored frames, as in dtypes=["float32", "float32"].'
        found = cast_exactly(self._owner, "frame", frame, self.dtype, hint)
        if found.shape == self._last:
            return np.ascontiguousarray(found)
        if found.shape == self._first:
            return np.ascontiguousarray(found.transpose(1, 2, 0))
        if found.shape == self._flat:
            return np.ascontiguousarray(found).reshape(self.shape)
        is_batch = found.ndim and found.shape[1:] in (self._last, self._first, self._flat)
        hint = "This looks like frames of several environments: add one frame." if is_batch else "res is (H, W)."
        shapes = dict.fromkeys(shape for shape in (self._last, self._flat, self._first) if shape is not None)
        expected = f"shape {' or '.join(map(str, shapes))}"
        raise ObservationError(self._owner, "frame", f"of shape {found.shape}", expected, hint)

"""``FrameForm``: which shapes a frame may come in, and how it becomes ``(H, W, C)``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ObservationError, ParameterError
from sb3_extra_buffers.recording.fitting import exactly

AUTO, FIRST, LAST = CHANNELS = ("auto", "first", "last")


class FrameForm:
    """The rule for frames.

    With ``"last"`` a frame is ``(H, W, C)``, with ``"first"`` ``(C, H, W)``. With ``"auto"`` it may be either; which
    one it is, its shape says. Where a shape would fit both (all three numbers are the same) ``"auto"`` is refused. A
    frame with one channel may also be ``(H, W)``.

    :param owner: the class of the recording, for errors
    :param res: height and width
    :param ch_num: how many channels
    :param channels: ``"auto"``, ``"first"`` or ``"last"``
    :param dtype: of the frames
    """

    def __init__(self, owner: str, res: Any, ch_num: Any, channels: str, dtype: np.dtype[Any]) -> None:
        self._owner = owner
        self.shape = _shape(owner, res, ch_num)
        self.dtype = dtype
        height, width, depth = self.shape
        if channels not in CHANNELS:
            raise ParameterError(owner, "channels", channels, f"it must be one of: {', '.join(CHANNELS)}")
        if channels == AUTO and height == width == depth > 1:
            allowed = f"a frame of shape {self.shape} does not say which of its axes are the channels"
            raise ParameterError(owner, "channels", channels, allowed, "Say 'first' or 'last'.")
        self._last = None if channels == FIRST else self.shape
        self._first = None if channels == LAST else (depth, height, width)
        self._flat = (height, width) if depth == 1 else None

    def fit(self, frame: Any) -> NDArray[Any]:
        """A frame as ``(H, W, C)`` in one piece of memory, or an error.

        :param frame: anything numpy can read
        """
        if type(frame) is np.ndarray and frame.dtype == self.dtype and frame.shape == self._last:
            return np.ascontiguousarray(frame)
        hint = 'dtypes[0] is what frames are stored as, as in dtypes=["float32", "float32"].'
        found = exactly(self._owner, "frame", frame, self.dtype, hint)
        if found.shape == self._last:
            return np.ascontiguousarray(found)
        if found.shape == self._first:
            return np.ascontiguousarray(found.transpose(1, 2, 0))
        if found.shape == self._flat:
            return np.ascontiguousarray(found).reshape(self.shape)
        is_batch = found.ndim and found.shape[1:] in (self._last, self._first, self._flat)
        hint = "It looks like frames of several environments: add those of one." if is_batch else "res is (H, W)."
        raise ObservationError(self._owner, "frame", f"of shape {found.shape}", self._expected, hint)

    @property
    def _expected(self) -> str:
        shapes = (self._last, self._flat, self._first)
        return "shape " + " or ".join(str(shape) for shape in dict.fromkeys(shapes) if shape is not None)


def _shape(owner: str, res: Any, ch_num: Any) -> tuple[int, int, int]:
    sides = tuple(res) if isinstance(res, (tuple, list)) else (res,)
    if len(sides) != 2 or not all(map(_is_count, sides)):
        raise ParameterError(owner, "res", res, "it must be height and width, two integers of at least 1")
    if not _is_count(ch_num):
        raise ParameterError(owner, "ch_num", ch_num, "it must be an integer of at least 1")
    return int(sides[0]), int(sides[1]), int(ch_num)


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) > 0

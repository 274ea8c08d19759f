"""``Pixels``: frames of any dtype and number of channels as colours that can be shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_extra_buffers.errors import ObservationError, ParameterError
from sb3_extra_buffers.recording.exports.label_colors import color_of_labels

#: Which channels of a frame are shown, and as what; see :class:`Pixels`.
Channels = Union[Literal["auto", "newest", "all", "rgb"], int, Sequence[int]]
#: Colours of labels: ours, or a table of shape ``(n, 3)``.
Palette = Union[Literal["labels"], ArrayLike, None]


@dataclass(frozen=True)
class Pixels:
    """How frames become colours.

    Three channels are red, green and blue; one channel is grey. Any other number of channels is a stack of grey frames,
    of which ``"auto"`` shows the newest, the last one.

    ``uint8`` is shown as it is. Of other dtypes, the least value is black and the greatest is white: from 0 to 1 for
    floats, the whole range of an integer. Values outside are shown as the nearest of these.

    :param feature: what shows them, for errors
    :param channels: ``"auto"``; ``"newest"`` for the last channel; ``"all"`` for all of them side by side; ``"rgb"``
        for the first three; a number for one of them; three numbers for red, green and blue
    :param palette: ``"labels"`` if values are labels, each of a colour of its own; or the colours as an array of shape
        ``(n, 3)``; ``None`` for shades of grey
    :param value_range: the values that are black and white, if the dtype does not say it
    """

    feature: str
    channels: Channels = "auto"
    palette: Palette = None
    value_range: tuple[float, float] | None = None

    def colors(self, frames: NDArray[Any]) -> NDArray[np.uint8]:
        """Red, green and blue of each pixel: shape ``(n, height, width, 3)``.

        :param frames: shape ``(n, H, W, C)``
        """
        picked = self._pick(frames)
        if self.palette is not None:
            return self._paint(picked)
        shades = self._shades(picked)
        if shades.ndim == 3:
            shades = np.broadcast_to(shades[..., np.newaxis], (*shades.shape, 3))
        return np.ascontiguousarray(shades)

    def _pick(self, frames: NDArray[Any]) -> NDArray[Any]:
        """What is shown: ``(n, H, W)`` for grey or labels, ``(n, H, W, 3)`` for colours."""
        count, chosen = frames.shape[-1], self.channels
        if isinstance(chosen, str) and chosen == "auto":
            chosen = "rgb" if count == 3 and self.palette is None else 0 if count == 1 else "newest"
        if isinstance(chosen, str):
            if chosen == "all":
                return np.concatenate([frames[..., channel] for channel in range(count)], axis=2)
            if chosen not in ("newest", "rgb"):
                raise self._refused(count)
            chosen = count - 1 if chosen == "newest" else (0, 1, 2)
        numbers = [chosen] if isinstance(chosen, (int, np.integer)) else list(chosen)
        if len(numbers) not in (1, 3) or not all(-count <= number < count for number in numbers):
            raise self._refused(count)
        if len(numbers) == 1:
            return frames[..., numbers[0]]
        if self.palette is not None:
            raise self._refused(count, "Labels are in one channel: name it.")
        return frames[..., :3] if numbers == [0, 1, 2] else frames[..., numbers]

    def _refused(self, count: int, hint: str = "") -> ParameterError:
        allowed = f"frames have {count} channels, and one or three of them can be shown, or 'all' side by side"
        return ParameterError(self.feature, "channels", self.channels, allowed, hint)

    def _paint(self, labels: NDArray[Any]) -> NDArray[np.uint8]:
        if labels.dtype.kind not in "biu":
            raise ObservationError(self.feature, "a frame", f"of {labels.dtype}", "labels, which are integers")
        if isinstance(self.palette, str):
            if self.palette != "labels":
                allowed = "it must be 'labels', an array of shape (n, 3), or None"
                raise ParameterError(self.feature, "palette", self.palette, allowed)
            return color_of_labels(labels)
        table = self._table()
        least, greatest = int(labels.min()), int(labels.max())
        if least < 0 or greatest >= len(table):
            outside = least if least < 0 else greatest
            expected = f"labels from 0 to {len(table) - 1}, for which the palette has colours"
            raise ObservationError(self.feature, "a pixel", str(outside), expected)
        return table[labels.astype(np.intp)]

    def _table(self) -> NDArray[np.uint8]:
        table = np.asarray(self.palette)
        is_table = table.ndim == 2 and table.shape[1] == 3 and len(table) > 0 and table.dtype.kind in "iu"
        if not is_table or table.min() < 0 or table.max() > 255:
            found = f"an array of {table.dtype} and shape {table.shape}"
            allowed = "it must be of shape (n, 3), with integers from 0 to 255"
            raise ParameterError(self.feature, "palette", found, allowed)
        return table.astype(np.uint8)

    def _shades(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        if self.value_range is None and values.dtype == np.uint8:
            return values
        if self.value_range is not None:
            black, white = self.value_range
            if not black < white:
                raise ParameterError(
                    self.feature, "value_range", self.value_range, "the first must be less than the second"
                )
        elif values.dtype.kind in "iu":
            black, white = np.iinfo(values.dtype).min, np.iinfo(values.dtype).max
        else:
            black, white = 0, 1
        part = (values.astype(np.float64) - black) / (white - black)
        return np.round(np.clip(np.nan_to_num(part), 0, 1) * 255).astype(np.uint8)

"""``Pixels``: conversion of frames of any dtype and number of channels to RGB colors."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sb3_extra_buffers.errors import ObservationError, ParameterError

#: Channels to show; see :class:`Pixels`.
Channels = Union[Literal["auto", "newest", "all", "rgb"], int, Sequence[int]]
#: Colors of labels: the built-in ones, or an array of shape ``(n, 3)``.
Palette = Union[Literal["labels"], ArrayLike, None]

#: Step on the color wheel: the golden ratio keeps the hues of neighboring labels apart.
_HUE_STEP = 0.61803398875
#: Saturation and brightness, in turn, so that similar hues differ in brightness.
_TONES = ((0.65, 0.95), (0.85, 0.75), (0.45, 1.0), (0.75, 0.55))


@cache
def label_colors() -> NDArray[np.uint8]:
    """256 colors, shape ``(256, 3)``: black for 0, and one for each label. They do not change between versions."""
    colors = [(0.0, 0.0, 0.0)]
    for label in range(255):
        saturation, brightness = _TONES[label % len(_TONES)]
        colors.append(colorsys.hsv_to_rgb(label * _HUE_STEP % 1, saturation, brightness))
    table = np.round(np.array(colors) * 255).astype(np.uint8)
    table.flags.writeable = False
    return table


def _color_labels(labels: NDArray[np.integer]) -> NDArray[np.uint8]:
    """Return the color of each label as a new last axis. Negative labels and labels above 255 reuse colors 1 to 255."""
    if labels.dtype != np.uint8:
        wide = labels.astype(np.int64)
        labels = np.where(wide == 0, 0, (wide - 1) % 255 + 1)
    colors: NDArray[np.uint8] = label_colors()[labels]
    return colors


@dataclass(frozen=True)
class Pixels:
    """Conversion of frames to colors.

    Three channels are red, green and blue; one channel is grey. Any other number of channels is a stack of grey frames,
    of which ``"auto"`` shows the newest, the last one.

    ``uint8`` is shown unchanged. For other dtypes, black and white are 0 and 1 for floats, and the smallest and largest
    value of an integer dtype. Values outside of this range are clipped.

    :param feature: name of the export, for errors
    :param channels: ``"auto"``; ``"newest"`` for the last channel; ``"all"`` for all channels side by side; ``"rgb"``
        for the first three; a number for one channel; three numbers for red, green and blue
    :param palette: ``"labels"`` if values are labels, each with its own color; or the colors as an array of shape
        ``(n, 3)``; ``None`` for shades of grey
    :param value_range: values shown as black and white, if the dtype does not define them
    """

    feature: str
    channels: Channels = "auto"
    palette: Palette = None
    value_range: tuple[float, float] | None = None

    def colors(self, frames: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the colors of each pixel: shape ``(n, height, width, 3)``.

        :param frames: shape ``(n, H, W, C)``
        """
        selected = self._select(frames)
        if self.palette is not None:
            return self._color(selected)
        shades = self._shades(selected)
        if shades.ndim == 3:
            shades = np.broadcast_to(shades[..., np.newaxis], (*shades.shape, 3))
        return np.ascontiguousarray(shades)

    def _select(self, frames: NDArray[Any]) -> NDArray[Any]:
        """Return the channels to show: ``(n, H, W)`` for grey or labels, ``(n, H, W, 3)`` for colors."""
        count, chosen = frames.shape[-1], self.channels
        if isinstance(chosen, str) and chosen == "auto":
            chosen = "rgb" if count == 3 and self.palette is None else 0 if count == 1 else "newest"
        if isinstance(chosen, str):
            if chosen == "all":
                return np.concatenate([frames[..., channel] for channel in range(count)], axis=2)
            if chosen not in ("newest", "rgb"):
                raise self._channel_error(count)
            chosen = count - 1 if chosen == "newest" else (0, 1, 2)
        numbers = [chosen] if isinstance(chosen, (int, np.integer)) else list(chosen)
        if len(numbers) not in (1, 3) or not all(-count <= number < count for number in numbers):
            raise self._channel_error(count)
        if len(numbers) == 1:
            return frames[..., numbers[0]]
        if self.palette is not None:
            raise self._channel_error(count, "Labels are in one channel: name it.")
        return frames[..., :3] if numbers == [0, 1, 2] else frames[..., numbers]

    def _channel_error(self, count: int, hint: str = "") -> ParameterError:
        allowed = f"frames have {count} channels; one or three of them can be shown, or 'all' side by side"
        return ParameterError(self.feature, "channels", self.channels, allowed, hint)

    def _color(self, labels: NDArray[Any]) -> NDArray[np.uint8]:
        if labels.dtype.kind not in "biu":
            raise ObservationError(self.feature, "a frame", f"of {labels.dtype}", "labels, which are integers")
        if isinstance(self.palette, str):
            if self.palette != "labels":
                allowed = "it must be 'labels', an array of shape (n, 3), or None"
                raise ParameterError(self.feature, "palette", self.palette, allowed)
            return _color_labels(labels)
        table = self._table()
        least, greatest = int(labels.min()), int(labels.max())
        if least < 0 or greatest >= len(table):
            outside = least if least < 0 else greatest
            expected = f"labels from 0 to {len(table) - 1}, the colors of the palette"
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
                allowed = "the first must be less than the second"
                raise ParameterError(self.feature, "value_range", self.value_range, allowed)
        elif values.dtype.kind in "iu":
            black, white = np.iinfo(values.dtype).min, np.iinfo(values.dtype).max
        else:
            black, white = 0, 1
        part = (values.astype(np.float64) - black) / (white - black)
        return np.round(np.clip(np.nan_to_num(part), 0, 1) * 255).astype(np.uint8)

"""Colours for labels: neighbouring numbers look different, 0 is the background."""

from __future__ import annotations

import colorsys
from functools import cache

import numpy as np
from numpy.typing import NDArray

#: A turn of the colour wheel by the golden ratio never comes back to a hue, and never close to the last ones.
_TURN = 0.61803398875
#: Saturation and brightness, in turn: hues that are alike are then not equally bright.
_TONES = ((0.65, 0.95), (0.85, 0.75), (0.45, 1.0), (0.75, 0.55))


@cache
def label_colors() -> NDArray[np.uint8]:
    """256 colours, shape ``(256, 3)``: black, and then one for each label. The same in every version."""
    colors = [(0.0, 0.0, 0.0)]
    for label in range(255):
        saturation, brightness = _TONES[label % len(_TONES)]
        colors.append(colorsys.hsv_to_rgb(label * _TURN % 1, saturation, brightness))
    table = np.round(np.array(colors) * 255).astype(np.uint8)
    table.flags.writeable = False
    return table


def color_of_labels(labels: NDArray[np.integer]) -> NDArray[np.uint8]:
    """The colour of each label. Those above 255 use the colours of 1 to 255 again, and so do negative ones.

    :param labels: integers of any shape; three colour values are added as last axis
    """
    if labels.dtype != np.uint8:
        wide = labels.astype(np.int64)
        labels = np.where(wide == 0, 0, (wide - 1) % 255 + 1)
    colors: NDArray[np.uint8] = label_colors()[labels]
    return colors

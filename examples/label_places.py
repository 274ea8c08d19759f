"""Where labels stand beside the marks of a picture without covering each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

#: Of a letter of nine points, in points.
_WIDTH, _HEIGHT = 5.6, 9.0
_MARK = 5.0
#: How far from its mark a label begins, to the right and upwards; to the left it ends there.
_OFFSETS = tuple(
    (side * reach, height)
    for reach, height in ((7, 3), (7, -9), (3, 8), (3, -15), (12, 12), (12, -20), (22, 2), (22, 20), (26, -26))
    for side in (1, -1)
)


def places(marks: NDArray[np.float64], texts: Sequence[str]) -> list[tuple[float, float]]:
    """The lower left corner of each label, relative to its mark; all in points.

    One label after the other is put where it covers the least of the marks and of the labels before it.

    :param marks: shape ``(n, 2)``
    :param texts: for each mark; an empty one takes no room
    """
    taken = [_box(x - _MARK, y - _MARK, 2 * _MARK, 2 * _MARK) for x, y in marks]
    found: list[tuple[float, float]] = []
    for (x, y), text in zip(marks, texts):
        width = _WIDTH * len(text)
        corners = [(dx if dx > 0 else dx - width, dy) for dx, dy in _OFFSETS]
        boxes = [_box(x + dx, y + dy, width, _HEIGHT) for dx, dy in corners]
        covered = [sum(_common(box, other) for other in taken) for box in boxes]
        best = int(np.argmin(covered))
        if text:
            taken.append(boxes[best])
        found.append(corners[best])
    return found


def _box(x: float, y: float, width: float, height: float) -> tuple[float, float, float, float]:
    return x, y, x + width, y + height


def _common(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> float:
    """The area that both boxes cover."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0) * max(height, 0)

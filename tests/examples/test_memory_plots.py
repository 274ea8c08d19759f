"""Labels stand beside their marks, and on nothing else as long as there is room."""

from __future__ import annotations

import numpy as np
import pytest

from examples._lib.memory_plots import _HEIGHT, _MARK, _WIDTH, _box, _common, places


@pytest.mark.parametrize("spread", [60.0, 120.0])
def test_labels_cover_neither_marks_nor_each_other_where_there_is_room(spread: float) -> None:
    random = np.random.default_rng(0)
    marks = np.array([(x, y) for x in range(5) for y in range(4)]) * spread + random.uniform(-8, 8, (20, 2))
    texts = [str(number) for number in random.integers(-100, 22, 20)]
    boxes = [
        _box(x + dx, y + dy, _WIDTH * len(text), _HEIGHT)
        for (x, y), (dx, dy), text in zip(marks, places(marks, texts), texts)
    ]
    boxes += [_box(x - _MARK, y - _MARK, 2 * _MARK, 2 * _MARK) for x, y in marks]
    for number, box in enumerate(boxes):
        assert not any(_common(box, other) for other in boxes[:number])


def test_two_marks_in_one_place_get_labels_in_two() -> None:
    first, second = places(np.zeros((2, 2)), ["9", "12"])
    assert first != second


def test_an_empty_label_takes_no_room() -> None:
    marks = np.array([(0.0, 0.0), (0.0, 0.0)])
    assert places(marks, ["", "5"])[1] == places(marks[:1], ["5"])[0]

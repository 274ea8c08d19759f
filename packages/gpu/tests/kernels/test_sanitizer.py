"""The sanitizer finds every bug that was planted, and none where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

COUNT = 40


@pytest.fixture
def planted(interpreter: ModuleType, helpers) -> Iterator[ModuleType]:
    module = helpers("planted")
    with interpreter.interpreted(module):
        yield module


def run(sanitizer, kernel, programs):
    data, out = torch.arange(COUNT, dtype=torch.uint8), torch.zeros(COUNT, dtype=torch.uint8)
    with sanitizer.Sanitizer(data, out) as watch:
        kernel[(programs,)](data, out, COUNT)
    return out, watch.checked


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("read_beyond", "load of 1 bytes out of bounds"),
        ("write_before", "store of 1 bytes out of bounds"),
        ("read_misaligned", "misaligned load of 2 bytes"),
        ("write_together", "race: store of bytes that another program writes"),
        ("write_overlapping", "race: store of bytes that another program writes"),
        ("read_neighbour", "race: "),
        ("write_what_all_read", "race: store to bytes that another program reads"),
        ("hint_falsely", "is not a multiple of 16"),
        ("assert_falsely", "count is negative"),
    ],
)
def test_finds_what_was_planted(sanitizer, planted, name, problem):
    with pytest.raises(Exception, match=problem) as caught:
        run(sanitizer, getattr(planted, name), 3)
    cause = caught.value
    while cause.__cause__ is not None:
        cause = cause.__cause__
    assert isinstance(cause, AssertionError)


def test_accepts_what_is_right(sanitizer, planted):
    out, checked = run(sanitizer, planted.add_one, 3)
    assert out.tolist() == [number + 1 for number in range(COUNT)]
    assert checked == 2 * COUNT


def test_accepts_atomics(sanitizer, planted):
    out, checked = run(sanitizer, planted.update_together, 3)
    assert out[:4].tolist() == [2, 0, 0, 0]
    assert checked == 3


def test_two_launches_are_no_race(sanitizer, planted):
    data, out = torch.arange(COUNT, dtype=torch.uint8), torch.zeros(COUNT, dtype=torch.uint8)
    with sanitizer.Sanitizer(data, out):
        planted.add_one[(3,)](data, out, COUNT)
        planted.add_one[(3,)](out, data, COUNT)
    assert data.tolist() == [number + 2 for number in range(COUNT)]


def test_without_it_bugs_go_unnoticed(planted):
    # Otherwise the tests above would not show that it is the sanitizer that finds them.
    data, out = torch.arange(COUNT, dtype=torch.uint8), torch.zeros(COUNT, dtype=torch.uint8)
    planted.write_together[(3,)](data, out, COUNT)
    planted.hint_falsely[(1,)](data, out, COUNT)
    planted.assert_falsely[(1,)](data, out, COUNT)
    assert out[:2].tolist() == [2, 0]

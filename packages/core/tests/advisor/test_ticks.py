"""No axis goes without labels."""

import pytest

from sb3_extra_buffers.advisor.ticks import ticks


@pytest.mark.parametrize("low", [0.93, 1.0, 4.2, 39.8e6, 99.9])
@pytest.mark.parametrize("factor", [1.001, 1.03, 1.3, 2, 7, 30, 1e3, 1e5])
def test_every_range_has_three_labels_within_it_and_not_too_many(low, factor):
    found = ticks(low, low * factor)
    assert 3 <= len(found) <= 10
    assert found == sorted(set(found))
    assert low <= found[0]
    assert found[-1] <= low * factor


def test_labels_are_round():
    assert ticks(0.8, 300) == [1, 10, 100]
    assert ticks(0.8, 12) == [1, 2, 5, 10]
    assert ticks(39.8, 42.2) == pytest.approx([40, 40.5, 41, 41.5, 42])

"""No axis goes without labels."""

import pytest

from sb3_extra_buffers.advisor.plot import sizes, ticks


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


@pytest.mark.parametrize(
    ("places", "labels"),
    [
        ([1e9, 1.02e9, 1.04e9], ["1.00 GB", "1.02 GB", "1.04 GB"]),
        ([1.05e9, 1.1e9, 1.15e9], ["1.05 GB", "1.10 GB", "1.15 GB"]),
        ([0.99e9, 1e9, 1.01e9], ["0.99 GB", "1.00 GB", "1.01 GB"]),
        ([40e6, 40.5e6, 41e6], ["40.0 MB", "40.5 MB", "41.0 MB"]),
        ([990, 995, 999.5], ["990.0 B", "995.0 B", "999.5 B"]),
        ([200, 500, 800], ["200 B", "500 B", "800 B"]),
        ([2e15, 2.001e15, 2.002e15], ["2000.0 TB", "2001.0 TB", "2002.0 TB"]),
        ([1e6, 1e8, 1e10], ["1.0 MB", "100.0 MB", "10.0 GB"]),
    ],
)
def test_labels_of_sizes_say_where_they_are(places, labels):
    assert sizes(places) == labels


@pytest.mark.parametrize("low", [1.0, 39.8, 999.0, 1.0e6, 1.2e6, 1.0e9, 9.99e11, 3e15])
@pytest.mark.parametrize("factor", [1.0001, 1.05, 1.3, 2, 7, 30, 1e5])
def test_no_two_labels_of_sizes_are_the_same(low, factor):
    labels = sizes(ticks(low, low * factor))
    assert len(set(labels)) == len(labels)

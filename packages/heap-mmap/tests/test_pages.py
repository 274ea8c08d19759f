"""Ranges of pages cover every byte of a batch, once, and nothing more."""

import numpy as np
import pytest

from sb3_extra_buffers_heap_mmap.pages import merged


@pytest.mark.parametrize("seed", range(20))
def test_ranges_are_the_pages_of_all_payloads_in_order_and_apart(seed):
    random = np.random.default_rng(seed)
    begins = random.integers(0, 100_000, random.integers(1, 60))
    ends = begins + random.integers(1, 9000, len(begins))
    firsts, sizes = merged(begins, ends, 512)
    behind = firsts + sizes
    pages = [set(range(begin // 512, (end - 1) // 512 + 1)) for begin, end in zip(begins.tolist(), ends.tolist())]
    found = [page for first, stop in zip(firsts.tolist(), behind.tolist()) for page in range(first, stop)]
    assert found == sorted(set().union(*pages))
    assert (firsts[1:] > behind[:-1]).all()

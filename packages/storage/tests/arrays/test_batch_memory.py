"""Batches of an array use memory again, and never while it is held."""

import numpy as np

from sb3_extra_buffers.arrays import CompressedArray


def test_what_an_array_gave_does_not_change_when_it_gives_more():
    array = CompressedArray((64,), np.uint8, (4096,), compression_method="gzip")
    content = np.random.default_rng(0).integers(0, 256, (64, 4096), np.uint8)
    array[:] = content
    rng = np.random.default_rng(1)
    picks = [rng.integers(0, 64, 32) for _ in range(6)]
    found = [array[pick] for pick in picks]
    for pick, batch in zip(picks, found):
        np.testing.assert_array_equal(batch, content[pick])
    assert array.nbytes_for_batches == 2 * 32 * 4096

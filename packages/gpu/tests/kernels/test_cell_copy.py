"""Uncompressed cells are copied by a kernel, interpreted, from wherever they are; bounds and races are checked."""

from __future__ import annotations

import numpy as np
import pytest
import torch


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize(("nbytes", "block"), [(1, 16), (15, 16), (16, 16), (17, 16), (1000, 256), (7056, 2048)])
def test_every_cell_comes_to_its_row_and_nothing_beside_it(watched, cells, dtype, nbytes, block):
    from sb3_extra_buffers.gpu_buffers.kernels import cell_copy

    random = np.random.default_rng(nbytes)
    content = [random.integers(256, size=nbytes, dtype=np.uint8) for _ in range(3)]
    tensors = [cells.tensor(one) for one in content]
    order = [2, 0, 1, 0]
    addresses = cells.addresses(tensors)[order]
    room = torch.full((4, nbytes + 5), 99, dtype=dtype)
    with watched(addresses, room, *tensors) as watch:
        cell_copy.copy(addresses, room[:, :nbytes], nbytes=nbytes, block=block)
    assert watch.checked >= 2 * 4 * nbytes
    for row, number in zip(room, order):
        assert row[:nbytes].tolist() == content[number].tolist()
        assert (row[nbytes:] == 99).all()


def test_no_cells_are_no_launch(interpreter):
    from sb3_extra_buffers.gpu_buffers.kernels import cell_copy

    cell_copy.copy(torch.empty(0, dtype=torch.int64), torch.empty((0, 8), dtype=torch.uint8), nbytes=8)

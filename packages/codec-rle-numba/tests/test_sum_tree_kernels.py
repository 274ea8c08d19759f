"""Compiled kernels of the sum tree compute what numpy computes, bit by bit."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers.sum_tree import NumpyTreeKernels, SumTree
from sb3_extra_buffers_codec_rle_numba.sum_tree_kernels import NumbaTreeKernels, sb3_extra_buffers_sum_tree_kernels


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 100, 1000, 1025, 20_001])
def test_same_bits_as_numpy(size):
    rng = np.random.default_rng(size)
    trees = [SumTree(size, kernels) for kernels in (NumpyTreeKernels(), NumbaTreeKernels())]
    for _ in range(50):
        leaves = rng.integers(0, size, rng.integers(1, 400))
        values = rng.random(len(leaves)) * 10.0 ** rng.integers(-20, 20) * (rng.random(len(leaves)) < 0.8)
        begin, end = sorted(rng.integers(0, size + 1, 2).tolist())
        value = rng.random()
        for tree in trees:
            tree.update(leaves, values)
            tree.fill(begin, end, value)
        assert np.array_equal(trees[0].nodes, trees[1].nodes)
        if trees[0].total:
            targets = np.append(rng.random(300), [0, np.nextafter(1, 0)]) * trees[0].total
            found = [tree.find(targets) for tree in trees]
            assert np.array_equal(*found)
            assert (trees[0].leaves[found[0]] > 0).all()


def test_targets_are_not_changed():
    tree, targets = SumTree(9, NumbaTreeKernels()), np.arange(9.0)
    tree.fill(0, 9, 1.0)
    assert tree.find(targets).tolist() == list(range(9))
    assert targets.tolist() == list(range(9))


def test_a_pickle_holds_no_compiled_code():
    assert hasattr(pickle.loads(pickle.dumps(NumbaTreeKernels())), "find")
    assert sb3_extra_buffers_sum_tree_kernels().protocol == 1

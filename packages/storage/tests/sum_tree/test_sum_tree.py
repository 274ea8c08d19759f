"""A sum tree finds what a cumulative sum would, and never drifts."""

import sys

import numpy as np
import pytest

from sb3_extra_buffers import sum_tree
from sb3_extra_buffers.errors import ParameterError, UnknownPluginError
from sb3_extra_buffers.sum_tree import NumpyTreeKernels, SumTree

SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 33, 100, 127, 1000, 1025]


def tree_of(leaves):
    tree = SumTree(len(leaves), NumpyTreeKernels())
    tree.restore(np.asarray(leaves, np.float64))
    return tree


def check_sums(tree):
    """Every parent is the sum of its two children, bitwise."""
    nodes, begins = tree.nodes, tree.begins.tolist()
    for below, above, end in zip(begins, begins[1:], [*begins[2:], len(nodes)]):
        children = nodes[below:above]
        assert np.array_equal(children[::2] + children[1::2], nodes[above : above + len(children) // 2])
        assert not nodes[above + len(children) // 2 : end].any()  # at most one node, so that the level is even


def check_search(tree, rng):
    """For integers, the leaf that a cumulative sum finds; at the edges, too."""
    sums = np.cumsum(tree.leaves)
    assert tree.total == sums[-1]
    if not tree.total:
        return
    edges = np.concatenate(([0.0], sums, sums - 1, np.nextafter(sums, 0)))
    targets = np.concatenate((edges, rng.random(500) * tree.total))
    targets = targets[(targets >= 0) & (targets < tree.total)]
    found = tree.find(targets)
    assert np.array_equal(found, np.searchsorted(sums, targets, "right"))
    assert (tree.leaves[found] > 0).all()


@pytest.mark.parametrize("size", SIZES)
def test_integers_are_found_as_by_a_cumulative_sum_after_random_changes(size):
    rng = np.random.default_rng(size)
    tree, expected = SumTree(size, NumpyTreeKernels()), np.zeros(size)
    for _ in range(60):
        if rng.random() < 0.3:
            begin, end = sorted(rng.integers(0, size + 1, 2).tolist())
            value = float(rng.integers(0, 5))
            tree.fill(begin, end, value)
            expected[begin:end] = value
        else:
            leaves = rng.integers(0, size, rng.integers(1, 300))
            values = rng.integers(0, 1000, len(leaves)) * (rng.random(len(leaves)) < 0.7)
            tree.update(leaves, values)
            for leaf, value in zip(leaves, values):  # the last wins
                expected[leaf] = value
        assert np.array_equal(tree.leaves, expected)
        check_sums(tree)
        check_search(tree, rng)
    other = SumTree(size, NumpyTreeKernels())
    other.restore(tree.leaves)
    assert np.array_equal(other.nodes, tree.nodes)


def test_the_last_value_of_a_repeated_leaf_wins():
    tree = SumTree(5, NumpyTreeKernels())
    tree.update([3, 1, 3, 3], [1.0, 2.0, 3.0, 4.0])
    assert tree.leaves.tolist() == [0, 2, 0, 4, 0]
    assert tree.total == 6


def test_float32_values_do_not_drift():
    rng = np.random.default_rng(0)
    tree = SumTree(1000, NumpyTreeKernels())
    for _ in range(200):
        tree.update(rng.integers(0, 1000, 50_000), rng.random(50_000, np.float32) * 10.0 ** rng.integers(-6, 6))
    check_sums(tree)
    assert tree.total == tree_of(tree.leaves).total
    tree.update(np.arange(1000), np.ones(1000, np.float32))
    assert tree.total == 1000


def test_rounded_sums_never_lead_to_a_leaf_without_mass():
    rng = np.random.default_rng(1)
    for size in (3, 10, 37):
        leaves = 10.0 ** rng.integers(-20, 20, size) * (rng.random(size) < 0.5)
        leaves[0] = 1e19
        tree = tree_of(leaves)
        targets = np.append(rng.random(1000) * tree.total, np.nextafter(tree.total, 0))
        assert (tree.leaves[tree.find(targets)] > 0).all()
        # Even for a target that no caller may give.
        assert (tree.leaves[tree.find(np.array([tree.total, 2 * tree.total]))] > 0).all()


@pytest.mark.parametrize("size", [1, 2, 1_000_000, 1_048_577])
def test_a_leaf_takes_16_bytes(size):
    tree = SumTree(size, NumpyTreeKernels())
    assert tree.nbytes <= 16 * size + 8 * 2 * len(tree.begins)


@pytest.mark.parametrize(
    ("leaves", "values"),
    [
        ([0, 5], [1.0, 1.0]),
        ([-1], [1.0]),
        ([1 << 40], [1.0]),
        ([0.0], [1.0]),
        ([0, 1], [1.0]),
        ([[0]], [[1.0]]),
        ([0, 1], [1.0, -1.0]),
        ([0, 1], [1.0, np.nan]),
        ([0, 1], [1.0, np.inf]),
        ([0, 1], [1.0, 1e308]),
    ],
)
def test_bad_changes_are_refused_and_change_nothing(leaves, values):
    tree = tree_of([1, 2, 3, 4, 5])
    before = tree.nodes.copy()
    with pytest.raises(ParameterError):
        tree.update(leaves, values)
    with pytest.raises(ParameterError):
        tree.fill(2, 6, 1.0)
    with pytest.raises(ParameterError):
        tree.fill(0, 2, -1.0)
    with pytest.raises(ParameterError):
        tree.restore(np.full(5, np.nan))
    with pytest.raises(ParameterError):
        tree.restore(np.ones(6))
    assert np.array_equal(tree.nodes, before)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, None])
def test_a_size_is_a_positive_integer(size):
    with pytest.raises(ParameterError, match="size"):
        SumTree(size)


def test_an_interrupted_change_is_complete_or_has_not_happened():
    def changed(lines):
        """A tree whose change was interrupted at this line; the number of lines if there are fewer."""
        tree, count = tree_of(np.arange(1.0, 38.0)), 0

        def trace(frame, event, _arg):
            nonlocal count
            if "sum_tree" not in frame.f_code.co_filename:
                return None
            if event == "line":
                count += 1
                if count == lines:
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            tree.update(np.array([3, 30, 3]), np.array([7.0, 9.0, 0.0]))
            tree.fill(10, 21, 5.0)
        except KeyboardInterrupt:
            pass
        else:
            count = -count
        finally:
            sys.settrace(before)
        return tree, count

    first, second = np.arange(1.0, 38.0), None
    states = [first.copy()]
    first[[3, 30]] = 0, 9
    states.append(first.copy())
    first[10:21] = 5
    states.append(first)
    second, seen, line = 0, set(), 1
    while second >= 0:
        tree, second = changed(line)
        (state,) = (at for at, leaves in enumerate(states) if np.array_equal(tree.leaves, leaves))
        check_sums(tree)
        seen.add(state)
        line += 1
    assert seen == {0, 1, 2}
    assert line > 50


def test_kernels_of_an_unknown_name_are_explained():
    with pytest.raises(UnknownPluginError, match="sum tree kernels"):
        sum_tree.create("abacus")

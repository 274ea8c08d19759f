"""Kernels of the sum tree of prioritized replay, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from sb3_extra_buffers.sum_tree import TreeKernelsPlugin, create, hookimpl
from sb3_extra_buffers_codec_rle_numba.jit import kernel

_Nodes, _Numbers = types.float64[::1], types.int64[::1]


@kernel(types.void(_Nodes, _Numbers, _Numbers, _Nodes))
def _update(nodes: Any, begins: Any, leaves: Any, values: Any) -> None:
    levels = len(begins)
    for at in range(len(leaves)):
        nodes[leaves[at]] = values[at]
    # Level by level: the reads of one level do not wait for each other.
    for level in range(1, levels):
        below, above = begins[level - 1], begins[level]
        last = np.int64(-1)
        for at in range(len(leaves)):
            parent = leaves[at] >> level
            if parent != last:
                left = below + 2 * parent
                nodes[above + parent] = nodes[left] + nodes[left + 1]
                last = parent


@kernel(types.void(_Nodes, _Numbers, types.int64, types.int64))
def _sum_above(nodes: Any, begins: Any, begin: Any, end: Any) -> None:
    for level in range(1, len(begins)):
        begin, end = begin >> 1, (end + 1) >> 1
        below, above = begins[level - 1], begins[level]
        for parent in range(begin, end):
            nodes[above + parent] = nodes[below + 2 * parent] + nodes[below + 2 * parent + 1]


@kernel(types.void(_Nodes, _Numbers, _Nodes, _Numbers))
def _find(nodes: Any, begins: Any, rests: Any, found: Any) -> None:
    for level in range(len(begins) - 2, -1, -1):
        begin = begins[level]
        for at in range(len(found)):
            node = found[at] * 2
            left = nodes[begin + node]
            is_right = (rests[at] >= left) & (nodes[begin + node + 1] > 0)
            rests[at] -= left if is_right else 0.0
            found[at] = node + is_right


class NumbaTreeKernels:
    """The same as in numpy, bit by bit. A call cannot be split by a signal."""

    def update(
        self,
        nodes: NDArray[np.float64],
        begins: NDArray[np.int64],
        leaves: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> None:
        """Set leaves, and recompute the sums above."""
        _update(nodes, begins, leaves, values)

    def sum_above(self, nodes: NDArray[np.float64], begins: NDArray[np.int64], begin: int, end: int) -> None:
        """Recompute the sums above a range of leaves."""
        _sum_above(nodes, begins, begin, end)

    def find(
        self, nodes: NDArray[np.float64], begins: NDArray[np.int64], targets: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Descend from the root, for all targets at once."""
        found = np.zeros(len(targets), np.int64)
        _find(nodes, begins, targets.copy(), found)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return create, ()  # the kernels that are installed where it is loaded


@hookimpl
def sb3_extra_buffers_sum_tree_kernels() -> TreeKernelsPlugin:
    return TreeKernelsPlugin(protocol=1, factory=NumbaTreeKernels, summary="Sums at memory speed, compiled by numba")

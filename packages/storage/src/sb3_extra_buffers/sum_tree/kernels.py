"""Kernels of a sum tree: their contract, their registry, and the implementation in numpy.

Another implementation registers itself by the entry point group ``sb3_extra_buffers.sum_tree_kernels``. It must compute
the same numbers, bit by bit: a parent is the float64 sum of its left and its right child.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import PluginError
from sb3_extra_buffers.registry import PluginKind, Registry
from sb3_extra_buffers.registry.homes import SUM_TREE_KERNEL_HOMES

logger = logging.getLogger("sb3_extra_buffers")

#: The version of this contract.
TREE_KERNELS_PROTOCOL = 1

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]


class TreeKernels(Protocol):
    """What is done with the nodes of a tree.

    ``nodes`` has all levels, leaves first, one after the other; ``begins`` has the index of the first node of each
    level. Node ``i`` of a level is the sum of nodes ``2 * i`` and ``2 * i + 1`` of the level below. Each level but the
    last, which is the root, has an even number of nodes. The arguments were checked before.
    """

    def update(self, nodes: Floats, begins: Numbers, leaves: Numbers, values: Floats) -> None:
        """Set leaves in the order given, so that the last value of a repeated leaf wins; recompute all sums above."""

    def sum_above(self, nodes: Floats, begins: Numbers, begin: int, end: int) -> None:
        """Recompute all sums above the leaves ``begin`` to ``end``, which is not included. There is at least one."""

    def find(self, nodes: Floats, begins: Numbers, targets: Floats) -> Numbers:
        """For each target, the leaf at which the sum of all leaves up to it first exceeds the target.

        From the root, go right if the target is not smaller than the left child, and the right child is positive; then
        subtract the left child from the target. So a leaf without mass is never found, even if sums are rounded.
        """


class NumpyTreeKernels:
    """The reference: whole levels at a time, in numpy."""

    def update(self, nodes: Floats, begins: Numbers, leaves: Numbers, values: Floats) -> None:
        """Set leaves, and recompute the sums above."""
        nodes[leaves] = values
        parents, begin = leaves >> 1, 0
        for above in begins[1:].tolist():
            if above - begin <= 4 * len(parents):  # all sums of a small level
                end = above + (above - begin) // 2
                np.add(nodes[begin:above:2], nodes[begin + 1 : above : 2], out=nodes[above:end])
                begin = above
                continue
            # A parent that occurs twice is computed twice: finding duplicates takes longer.
            left = parents << 1
            left += begin
            sums = nodes[left]
            left += 1
            sums += nodes[left]
            nodes[parents + above] = sums
            parents, begin = parents >> 1, above

    def sum_above(self, nodes: Floats, begins: Numbers, begin: int, end: int) -> None:
        """Recompute the sums above a range of leaves."""
        below = 0
        for above in begins[1:].tolist():
            begin, end = begin >> 1, (end + 1) >> 1
            children = nodes[below + 2 * begin : below + 2 * end]
            np.add(children[::2], children[1::2], out=nodes[above + begin : above + end])
            below = above

    def find(self, nodes: Floats, begins: Numbers, targets: Floats) -> Numbers:
        """Descend from the root, for all targets at once."""
        found = np.zeros(len(targets), np.int64)
        rest = targets.copy()
        for begin in begins[-2::-1].tolist():
            found <<= 1
            at = found + begin
            left = nodes[at]
            at += 1
            is_right = (rest >= left) & (nodes[at] > 0)
            left *= is_right
            rest -= left
            found += is_right
        return found


@dataclass(frozen=True)
class TreeKernelsPlugin:
    """An implementation as its distribution describes it.

    :param protocol: the version of the contract that it was written for, as a literal number (today: 1)
    :param factory: makes the kernels
    :param summary: one line for listings
    """

    protocol: int
    factory: Callable[[], TreeKernels]
    summary: str


registry: Registry[TreeKernelsPlugin] = Registry(
    PluginKind(
        label="sum tree kernels",
        group="sb3_extra_buffers.sum_tree_kernels",
        hook="sb3_extra_buffers_sum_tree_kernels",
        plugin_type=TreeKernelsPlugin,
        protocol=TREE_KERNELS_PROTOCOL,
        homes=SUM_TREE_KERNEL_HOMES,
        distribution="sb3-extra-buffers-storage",
    )
)


def create(name: str | None = None) -> TreeKernels:
    """Make kernels of a sum tree. The choice changes the speed and nothing else.

    :param name: the name of an installed plugin; ``None`` takes the first plugin that works, and numpy if there is none
    """
    if name is not None:
        return registry.load(name).factory()
    for offered in registry.names():
        kernels = _working(offered)
        if kernels is not None:
            return kernels
    return NumpyTreeKernels()


def _working(name: str) -> TreeKernels | None:
    try:
        return registry.load(name).factory()
    except PluginError as error:
        logger.warning("Sum tree kernels %r are installed but do not work; others are used. %s", name, error)
        return None

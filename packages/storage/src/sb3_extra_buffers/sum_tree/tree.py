"""``SumTree``: priorities of numbered leaves, and the sums above them."""

from __future__ import annotations

from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.sum_tree.kernels import Floats, Numbers, TreeKernels, create

#: A change: leaves and their values, or the begin and the end of a range and its value.
Change = Union[tuple[Numbers, Floats], tuple[int, int, float]]


class SumTree:
    """Non-negative priorities of ``size`` leaves, any number, and their sums in float64.

    A parent is always the sum of its two children, bit by bit: sums are recomputed and never corrected by differences,
    so nothing drifts. Levels have ``size``, ``size / 2``, ... nodes, which makes 16 bytes per leaf.

    A change is complete or has not happened: an interrupted one is finished before the tree is used again.

    :param size: number of leaves
    :param kernels: default: the fastest that are installed
    """

    def __init__(self, size: int, kernels: TreeKernels | None = None) -> None:
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise ParameterError("SumTree", "size", size, "it must be an integer of at least 1")
        self.size = int(size)
        self._kernels = create() if kernels is None else kernels
        widths, width = [], self.size
        while width > 1:
            width += width % 2
            widths.append(width)
            width //= 2
        #: The index of the first node of each level, leaves first.
        self.begins: Numbers = np.concatenate(([0], np.cumsum(widths, dtype=np.int64))).astype(np.int64)
        self._nodes: Floats = np.zeros(int(self.begins[-1]) + 1)
        #: A change that was decided and not yet made. Set it, and call :meth:`finish`.
        self.pending: Change | None = None
        #: The largest priority: sums of all leaves stay finite.
        self.limit = float(np.finfo(np.float64).max) / (2 * self.size)

    @property
    def nbytes(self) -> int:
        """Bytes of all nodes."""
        return self._nodes.nbytes

    @property
    def nodes(self) -> Floats:
        """All nodes, to be read only."""
        self.finish()
        return self._nodes

    @property
    def leaves(self) -> Floats:
        """The priorities of all leaves, to be read only."""
        return self.nodes[: self.size]

    @property
    def total(self) -> float:
        """The sum of all priorities."""
        return float(self.nodes[-1])

    def update(self, leaves: Any, values: Any) -> None:
        """Set priorities. If a leaf is repeated, its last value wins.

        :param leaves: numbers of leaves
        :param values: a priority for each
        """
        self.finish()
        self.pending = self.checked(leaves, values)
        self.finish()

    def fill(self, begin: int, end: int, value: float) -> None:
        """Set the priorities of leaves ``begin`` to ``end``, which is not included, to one value."""
        self.finish()
        if not 0 <= begin <= end <= self.size:
            raise ParameterError("SumTree", "begin, end", (begin, end), f"there are {self.size} leaves")
        self._check_values(np.array([value]))
        if begin < end:
            self.pending = begin, end, float(value)
            self.finish()

    def restore(self, leaves: NDArray[Any]) -> None:
        """Set all priorities."""
        if leaves.shape != (self.size,):
            raise ParameterError("SumTree", "leaves", leaves.shape, f"there are {self.size} leaves")
        self._check_values(leaves)
        self.pending = None
        self._nodes[: self.size] = leaves
        self._kernels.sum_above(self._nodes, self.begins, 0, self.size)

    def find(self, targets: Floats) -> Numbers:
        """The leaves for which ``numpy.searchsorted(numpy.cumsum(leaves), targets, "right")`` stands.

        :param targets: numbers from 0 to :attr:`total`, which is not included
        """
        return self._kernels.find(self.nodes, self.begins, np.ascontiguousarray(targets, np.float64))

    def checked(self, leaves: Any, values: Any) -> Change:
        """Leaves and values as a change, or an error."""
        leaves, values = np.ascontiguousarray(leaves), np.ascontiguousarray(values, np.float64)
        if leaves.dtype.kind not in "iu" or leaves.ndim != 1 or leaves.shape != values.shape:
            found = f"{leaves.dtype} of shape {leaves.shape}, values of shape {values.shape}"
            raise ParameterError("SumTree", "leaves", found, "it must be one integer for each value")
        leaves = leaves.astype(np.int64, copy=False)
        if len(leaves):
            if leaves.min() < 0 or leaves.max() >= self.size:
                raise ParameterError("SumTree", "leaves", leaves, f"there are {self.size} leaves")
            self._check_values(values)
        return leaves, values

    def finish(self) -> None:
        """Make a pending change. Doing so twice is the same as once."""
        change = self.pending
        if change is None:
            return
        if len(change) == 3:
            begin, end, value = change
            self._nodes[begin:end] = value
            self._kernels.sum_above(self._nodes, self.begins, begin, end)
        elif len(change[0]):
            self._kernels.update(self._nodes, self.begins, *change)
        self.pending = None

    def _check_values(self, values: Floats) -> None:
        # One comparison finds NaN, too.
        if not (values.min() >= 0 and values.max() <= self.limit):
            raise ParameterError("SumTree", "values", values, f"priorities must be from 0 to {self.limit:.3g}")

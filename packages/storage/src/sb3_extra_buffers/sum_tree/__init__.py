"""A sum tree: draws numbers in proportion to their priorities. Used by prioritized replay."""

from sb3_extra_buffers.registry import hookimpl
from sb3_extra_buffers.sum_tree.kernels import (
    TREE_KERNELS_PROTOCOL,
    NumpyTreeKernels,
    TreeKernels,
    TreeKernelsPlugin,
    create,
    registry,
)
from sb3_extra_buffers.sum_tree.tree import SumTree

__all__ = [
    "TREE_KERNELS_PROTOCOL",
    "NumpyTreeKernels",
    "SumTree",
    "TreeKernels",
    "TreeKernelsPlugin",
    "create",
    "hookimpl",
    "registry",
]

"""Distributions that provide our plugins beyond the built-in ones: the table behind every install hint."""

from __future__ import annotations

CODEC_HOMES = {
    "igzip": "sb3-extra-buffers-codec-isal",
    "lz4-block": "sb3-extra-buffers-codec-lz4",
    "lz4-frame": "sb3-extra-buffers-codec-lz4",
    "rle-jit": "sb3-extra-buffers-codec-rle-numba",
    "zstd": "sb3-extra-buffers-codec-zstd",
}

HEAP_HOMES = {
    "device": "sb3-extra-buffers-gpu",
    "device-ring": "sb3-extra-buffers-gpu",
    "mmap": "sb3-extra-buffers-heap-mmap",
}

#: Kernels of the frame store, whose contract is part of the distribution storage.
FRAME_KERNEL_HOMES = {"numba": "sb3-extra-buffers-codec-rle-numba"}

#: Kernels of the sum tree, whose contract is part of the distribution storage, too.
SUM_TREE_KERNEL_HOMES = {"numba": "sb3-extra-buffers-codec-rle-numba"}

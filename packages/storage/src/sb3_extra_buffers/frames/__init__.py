"""Frames stored once: how observations are split into frames, and the bytes of a chunk of frames."""

from sb3_extra_buffers.frames.geometry import FrameGeometry, stacks, whole
from sb3_extra_buffers.frames.kernels import (
    KERNELS_PROTOCOL,
    CachingKernels,
    Chunks,
    ChunkSource,
    ContiguousKernels,
    FrameKernels,
    KernelsPlugin,
    Known,
    OverlappingKernels,
    Places,
    contiguous_by,
    create,
    registry,
)
from sb3_extra_buffers.frames.numpy_kernels import REFERENCE
from sb3_extra_buffers.frames.streams import Change, Streams, apply_changes
from sb3_extra_buffers.registry import hookimpl

__all__ = [
    "KERNELS_PROTOCOL",
    "REFERENCE",
    "CachingKernels",
    "Change",
    "ChunkSource",
    "Chunks",
    "ContiguousKernels",
    "FrameGeometry",
    "FrameKernels",
    "KernelsPlugin",
    "Known",
    "OverlappingKernels",
    "Places",
    "Streams",
    "apply_changes",
    "contiguous_by",
    "create",
    "hookimpl",
    "registry",
    "stacks",
    "whole",
]

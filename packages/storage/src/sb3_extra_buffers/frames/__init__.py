"""Frames stored once: how observations are taken apart and put together, and the bytes of a chunk of frames."""

from sb3_extra_buffers.frames.contiguity import Contiguity
from sb3_extra_buffers.frames.creation import REFERENCE, create, registry
from sb3_extra_buffers.frames.geometry import FrameGeometry, stacks, whole
from sb3_extra_buffers.frames.kernels import (
    KERNELS_PROTOCOL,
    Chunks,
    ChunkSource,
    ContiguousKernels,
    FrameKernels,
    KernelsPlugin,
    Known,
    Places,
)
from sb3_extra_buffers.frames.streams import Streams
from sb3_extra_buffers.registry import hookimpl

__all__ = [
    "KERNELS_PROTOCOL",
    "REFERENCE",
    "ChunkSource",
    "Chunks",
    "Contiguity",
    "ContiguousKernels",
    "FrameGeometry",
    "FrameKernels",
    "KernelsPlugin",
    "Known",
    "Places",
    "Streams",
    "create",
    "hookimpl",
    "registry",
    "stacks",
    "whole",
]

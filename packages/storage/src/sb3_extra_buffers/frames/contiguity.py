"""Arrays in the order of C, which is what kernels take, from images that a wrapper has turned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames.kernels import FrameKernels


@dataclass
class Contiguity:
    """``numpy.ascontiguousarray``, by kernels that are quicker at it if there are such.

    ``VecTransposeImage`` of Stable-Baselines3 hands out views, and copies of them keep the order of their memory. For a
    stack of four frames, numpy needs eight times as long to turn them as for a plain copy.

    It holds kernels rather than their method: a pickle takes whatever kernels are installed where it is loaded.

    :param kernels: what may have a quicker way; ``None`` leaves it to numpy
    """

    kernels: FrameKernels | None = None

    def __call__(self, array: NDArray[Any]) -> NDArray[Any]:
        arrange: Callable[[NDArray[Any]], NDArray[Any]]
        arrange = getattr(self.kernels, "contiguous", np.ascontiguousarray)
        return arrange(array)

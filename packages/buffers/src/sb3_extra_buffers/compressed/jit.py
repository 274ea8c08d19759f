"""Compile before forking."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.compressed.availability import has_numba
from sb3_extra_buffers.errors import MissingExtraError


def init_jit(*, elem_type: DTypeLike = np.uint8, runs_type: DTypeLike = np.uint16, **kwargs: Any) -> None:
    """Compile the kernels of ``rle-jit``, before worker processes are forked. They are the same for all dtypes.

    :param elem_type: dtype of the observations
    :param runs_type: accepted for old scripts, without effect
    :param kwargs: accepted for old scripts, without effect
    """
    del runs_type, kwargs
    if not has_numba():
        raise MissingExtraError("init_jit", "sb3-extra-buffers-codec-rle-numba", "numba")
    bind("rle-jit", CellSpec(elem_type, 1))

"""Helpers of the published package: dtypes, installed codecs, compilation before a fork, a stand-in class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sb3_extra_buffers.codecs import CellSpec, bind, names
from sb3_extra_buffers.errors import MissingExtraError, ParameterError
from sb3_extra_buffers.stores import parse_request

_UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)
_SIGNED = (np.int8, np.int16, np.int32, np.int64)
_FLOATS = (np.float32, np.float64)


def find_smallest_dtype(max_val: float, signed: bool = False, fallback: Any = np.float32) -> Any:
    """The smallest type of numpy that can hold a number.

    :param max_val: the largest number to hold
    :param signed: whether negative numbers occur too
    :param fallback: what to return if no type can
    """
    for kind in (*(_SIGNED if signed else _UNSIGNED), *_FLOATS):
        # Plain numbers: numpy would round the limit, or overflow, to compare it.
        limit = float(np.finfo(kind).max) if kind in _FLOATS else int(np.iinfo(kind).max)
        if max_val <= limit:
            return kind
    return fallback


def find_buffer_dtypes(
    obs_shape: int | Sequence[int], elem_dtype: DTypeLike = np.uint8, compression_method: Any = "rle"
) -> dict[str, Any]:
    """The ``dtypes`` argument of a buffer. Passing it is optional: by default, the space decides.

    A codec that compiles is compiled for these observations now, so that processes forked later inherit the result.

    :param obs_shape: shape of one observation
    :param elem_dtype: its dtype
    :param compression_method: the codec that will be used
    """
    shape = (obs_shape,) if isinstance(obs_shape, (int, np.integer)) else tuple(obs_shape)
    count = math.prod(int(axis) for axis in shape)
    if count < 0:
        raise ParameterError("find_buffer_dtypes", "obs_shape", obs_shape, "no axis can be negative")
    spec = parse_request(compression_method)
    if spec is not None and spec.name.endswith("-jit") and count:
        bind(spec, CellSpec(elem_dtype, count))
    return {"elem_type": elem_dtype, "runs_type": find_smallest_dtype(count)}


def has_numba() -> bool:
    """Whether ``rle-jit`` is installed."""
    return "rle-jit" in names()


def has_igzip() -> bool:
    """Whether ``igzip`` is installed."""
    return "igzip" in names()


def has_zstd() -> bool:
    """Whether ``zstd`` is installed."""
    return "zstd" in names()


def has_lz4() -> bool:
    """Whether ``lz4-frame`` and ``lz4-block`` are installed."""
    return {"lz4-frame", "lz4-block"} <= set(names())


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


class DummyCls:
    """Takes any arguments and does nothing with them.

    For ``custom_objects`` when a model is loaded only to be used: no buffer is made for it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs


DummyCls.__module__ = __package__  # saved models name the package

"""Dtypes of torch: conversion from and to numpy, and the choice of dtypes to store.

The size estimates are importable from here, too, as in the published package.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch as th
from numpy.typing import DTypeLike

from sb3_extra_buffers.compressed.utils import find_buffer_dtypes, has_zstd
from sb3_extra_buffers.compressed.utils import find_smallest_dtype as find_smallest_numpy_dtype
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.gpu_buffers.size_estimation import (
    estimate_max_slot_bytes,
    estimate_total_heap_bytes,
    torch_dtype_element_size,
)

__all__ = [
    "estimate_max_slot_bytes",
    "estimate_total_heap_bytes",
    "find_gpu_buffer_dtypes",
    "find_smallest_dtype",
    "has_zstd",
    "numpy_dtype_to_torch",
    "torch_dtype_element_size",
    "torch_dtype_to_numpy",
]

_WORDS = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
_TO_TORCH: dict[np.dtype[Any], th.dtype] = {np.dtype(word): getattr(th, word) for word in _WORDS}
_TO_NUMPY = {ours: theirs for theirs, ours in _TO_TORCH.items()}


def numpy_dtype_to_torch(dtype: DTypeLike) -> th.dtype:
    """The torch dtype for a numpy dtype.

    :param dtype: anything that ``numpy.dtype`` accepts: ``np.uint8``, ``"float32"``, ``space.dtype``
    """
    owner = "numpy_dtype_to_torch"
    try:
        # numpy reads None as float64; here it is a missing argument.
        found = None if dtype is None else np.dtype(dtype)
    except TypeError as error:
        raise ParameterError(owner, "dtype", dtype, "it must name a dtype of numpy") from error
    if found is None:
        raise ParameterError(owner, "dtype", dtype, "it must name a dtype of numpy")
    if found not in _TO_TORCH:
        swapped = found.newbyteorder("=") in _TO_TORCH
        hint = f"Torch has no other byte order than the machine's: use {found.newbyteorder('=')}." if swapped else ""
        raise ParameterError(owner, "dtype", dtype, f"torch has these: {', '.join(_WORDS)}", hint)
    return _TO_TORCH[found]


def torch_dtype_to_numpy(dtype: th.dtype) -> np.dtype[Any]:
    """The numpy dtype for a torch dtype.

    :param dtype: of torch; ``bfloat16`` and the floats of 8 bits have no counterpart
    """
    if dtype not in _TO_NUMPY:
        hint = "Convert such a tensor to float32, or view its bits as int16." if dtype is th.bfloat16 else ""
        raise ParameterError("torch_dtype_to_numpy", "dtype", dtype, f"numpy has these: {', '.join(_WORDS)}", hint)
    return _TO_NUMPY[dtype]


def find_smallest_dtype(max_val: float, signed: bool = False, fallback: th.dtype = th.float32) -> th.dtype:
    """The smallest torch dtype that can hold a number.

    :param max_val: the largest number to hold
    :param signed: whether negative numbers occur, too
    :param fallback: result if no integer type can hold it
    """
    found = find_smallest_numpy_dtype(max_val, signed, fallback=None)
    return fallback if found is None else numpy_dtype_to_torch(found)


def find_gpu_buffer_dtypes(
    obs_shape: int | Sequence[int], elem_dtype: th.dtype | DTypeLike = th.uint8, compression_method: Any = "rle"
) -> dict[str, Any]:
    """The ``dtypes`` argument of a buffer on a device. It is optional: the default is the dtype of the space.

    :param obs_shape: shape of one observation
    :param elem_dtype: its dtype, of torch or of numpy
    :param compression_method: the codec to be used; a codec that is compiled by numba is compiled now
    """
    elem_type = elem_dtype if isinstance(elem_dtype, th.dtype) else numpy_dtype_to_torch(elem_dtype)
    on_the_host = find_buffer_dtypes(obs_shape, torch_dtype_to_numpy(elem_type), compression_method)
    runs_type = numpy_dtype_to_torch(on_the_host["runs_type"])
    # At least 16 bits, as in the published package: kernels for a single byte would gain next to nothing.
    return {"elem_type": elem_type, "runs_type": th.uint16 if runs_type is th.uint8 else runs_type}

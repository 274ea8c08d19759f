"""Estimates the bytes that compressed observations need, from ratios measured on an Atari game."""

from __future__ import annotations

import math

import numpy as np
import torch as th

from sb3_extra_buffers.codecs import Levels, parse
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.gpu_buffers.devices import ALIGNMENT
from sb3_extra_buffers.gpu_buffers.size_ratios import RATIOS

#: The levels of each codec; the default is the level that an estimate assumes if none is given. For zstd it is that of
#: the published package. Its ratio is larger than that of level 3, the default of the codec: a cautious estimate.
LEVELS = {
    "gzip": Levels(default=9, ranges=((0, 9),)),
    "igzip": Levels(default=3, ranges=((0, 3),)),
    "lz4-block": Levels(default=9, ranges=((-65537, 12),)),
    "lz4-frame": Levels(default=0, ranges=((-65536, 16),)),
    "zstd": Levels(default=-3, ranges=((-100, -1), (1, 22))),
}
WITHOUT_LEVELS = ("none", "rle", "rle-jit")


def parse_compression_method(method: str) -> tuple[str, int | None]:
    """Split the name of a codec from its level: ``"zstd-5"`` is ``("zstd", -5)``, ``"rle"`` is ``("rle", None)``.

    :param method: the shorthand that buffers take as ``compression_method``
    """
    spec = parse(method)
    level = spec.params.get("level")
    return spec.name, level if isinstance(level, int) else None


def validate_compresslevel(family: str, level: int) -> None:
    """Refuse a level that the codec does not have. Codecs of other packages check their levels themselves.

    :param family: the name of the codec, without a level
    :param level: the level
    """
    if family in WITHOUT_LEVELS:
        raise ParameterError(f"codec {family!r}", "compresslevel", level, "this codec has no levels", "Leave it out.")
    if family in LEVELS and level not in LEVELS[family]:
        raise ParameterError(f"codec {family!r}", "compresslevel", level, f"levels: {LEVELS[family]}")


def estimate_save_ratio(compression_method: str, compresslevel: int | None = None) -> float:
    """Size of a payload divided by that of the raw observation, as measured on frames of an Atari game.

    Levels between two measured ones are interpolated. For a codec that was not measured, such as one from another
    package, the ratio is 1.

    :param compression_method: the codec, with or without a level
    :param compresslevel: overrides the level in ``compression_method``
    """
    family, level = parse_compression_method(compression_method)
    if compresslevel is not None:
        level = int(compresslevel) if isinstance(compresslevel, np.integer) else compresslevel
    if level is not None:
        validate_compresslevel(family, level)
    elif family in LEVELS:
        level = LEVELS[family].default
    if family not in RATIOS:
        return 1.0
    levels = sorted(RATIOS[family])
    ratios = [RATIOS[family][measured] for measured in levels]
    return float(np.interp(_effort(level or 0), [_effort(measured) for measured in levels], ratios))


def estimate_max_slot_bytes(
    flat_len: int,
    elem_type: th.dtype,
    runs_type: th.dtype,  # noqa: ARG001  # no run costs more than the raw escape, whatever its type
    compression_method: str,
    overalloc_factor: float = 1.5,
    compresslevel: int | None = None,
) -> int:
    """Upper bound of the bytes of one observation, whatever its content.

    The larger of the measured size times ``overalloc_factor`` and the worst case: codecs store incompressible cells
    raw, at most with a checksum, and the next payload begins at a multiple of 16. For a codec that was not measured,
    such as one from another package, it is the worst case.

    :param flat_len: elements of a flattened observation
    :param elem_type: their dtype
    :param runs_type: accepted for old scripts; it changes nothing
    :param compression_method: the codec, with or without a level (``"zstd3"``, ``"zstd-5"``, ``"lz4-frame/5"``)
    :param overalloc_factor: headroom on the measured ratio
    :param compresslevel: overrides the level in ``compression_method``
    """
    raw = _raw_nbytes(flat_len, elem_type)
    measured = raw * estimate_save_ratio(compression_method, compresslevel) * _factor(overalloc_factor)
    known = parse_compression_method(compression_method)[0] in RATIOS
    return max(_aligned(measured), _worst_case(raw)) if known else _worst_case(raw)


def estimate_total_heap_bytes(
    n_cells: int,
    flat_len: int,
    elem_type: th.dtype,
    runs_type: th.dtype,
    compression_method: str,
    overalloc_factor: float = 1.5,
    compresslevel: int | None = None,
) -> int:
    """A capacity for ``n_cells`` observations of any content: that many times the upper bound of one.

    Real frames need far less: see ``size_estimation.estimate_packed_heap_bytes``.

    :param n_cells: number of observations
    :param flat_len: elements of a flattened observation
    :param elem_type: their dtype
    :param runs_type: accepted for old scripts; it changes nothing
    :param compression_method: the codec, with or without a level
    :param overalloc_factor: headroom on the measured ratio
    :param compresslevel: overrides the level in ``compression_method``
    """
    cells = _whole("n_cells", n_cells)
    options = (compression_method, overalloc_factor, compresslevel)
    return cells * estimate_max_slot_bytes(flat_len, elem_type, runs_type, *options)


def estimate_packed_heap_bytes(
    n_cells: int,
    flat_len: int,
    elem_type: th.dtype,
    compression_method: str,
    overalloc_factor: float = 1.5,
    compresslevel: int | None = None,
) -> int:
    """A capacity for ``n_cells`` observations that compress like the measured frames.

    Payloads are contiguous, so a few larger ones do not matter; there is room for one incompressible observation
    besides. It is never more than the worst case of all observations.

    :param n_cells: number of observations
    :param flat_len: elements of a flattened observation
    :param elem_type: their dtype
    :param compression_method: the codec, with or without a level
    :param overalloc_factor: headroom on the measured ratio
    :param compresslevel: overrides the level in ``compression_method``
    """
    raw, cells = _raw_nbytes(flat_len, elem_type), _whole("n_cells", n_cells)
    measured = raw * estimate_save_ratio(compression_method, compresslevel) * _factor(overalloc_factor)
    # Alignment costs each payload up to 15 bytes, which matters for small observations.
    return min(cells * _aligned(measured + ALIGNMENT - 1) + _worst_case(raw), cells * _worst_case(raw))


def torch_dtype_element_size(dtype: th.dtype) -> int:
    """Bytes of an element of a torch dtype.

    :param dtype: such as ``torch.uint8``
    """
    if not isinstance(dtype, th.dtype):
        hint = "numpy_dtype_to_torch() translates those of numpy."
        raise ParameterError("torch_dtype_element_size", "dtype", dtype, "it must be a dtype of torch", hint)
    return dtype.itemsize


def _effort(level: int) -> float:
    """Scale of levels for the interpolation: steps matter less far from 0."""
    return math.copysign(math.log2(1 + abs(level)), level)


def _worst_case(raw: int) -> int:
    # A raw cell, a checksum of 4 bytes and the alignment of the next payload.
    return _aligned(raw + ALIGNMENT)


def _aligned(nbytes: float) -> int:
    return math.ceil(nbytes / ALIGNMENT) * ALIGNMENT


def _raw_nbytes(flat_len: int, elem_type: th.dtype) -> int:
    return _whole("flat_len", flat_len) * torch_dtype_element_size(elem_type)


def _whole(parameter: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ParameterError("size estimate", parameter, value, "it must be an integer of at least 0")
    return int(value)


def _factor(overalloc_factor: float) -> float:
    if not 0 < overalloc_factor < math.inf:
        allowed = "it must be a finite number above 0"
        raise ParameterError("size estimate", "overalloc_factor", overalloc_factor, allowed, "The default is 1.5.")
    return float(overalloc_factor)

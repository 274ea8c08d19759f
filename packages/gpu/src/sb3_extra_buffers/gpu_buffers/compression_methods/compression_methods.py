"""Run-length encoding of one tensor in a :class:`RawBuffer`: functions of 0.5.0, at their import path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch as th

from sb3_extra_buffers.errors import ParameterError, PayloadError
from sb3_extra_buffers.gpu_buffers.metadata import arr_config_length
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer, read_at, write_at

#: Integers of the same size with which torch computes; it has few operators for unsigned ones.
_SIGNED = {1: th.int8, 2: th.int16, 4: th.int32, 8: th.int64}


def rle_compress(
    arr: th.Tensor, buffer: RawBuffer, elem_type: th.dtype = th.uint8, runs_type: th.dtype = th.uint16
) -> tuple[int, int, int]:
    """Write the runs of a tensor into a region that :meth:`RawBuffer.malloc` allocates.

    Elements are compared by their bytes, so ``nan`` and ``-0.0`` are kept.

    :param arr: the elements
    :param buffer: the buffer to write to
    :param elem_type: dtype to store; it must hold every element exactly
    :param runs_type: integer dtype of the run lengths; it must hold the longest run
    :return: position of the run lengths and of the values, in bytes, and the number of runs
    """
    flat = arr.detach().reshape(-1).contiguous()
    elements = flat.to(elem_type)
    if elements.dtype != flat.dtype and not th.equal(elements.to(flat.dtype), flat):
        allowed = f"it cannot hold every element of {flat.dtype} exactly"
        raise ParameterError("rle_compress", "elem_type", elem_type, allowed, f"Use {flat.dtype}.")
    if not len(elements):
        start, _ = buffer.malloc(0)
        return start, start, 0
    rows = elements.view(th.uint8).view(len(elements), elem_type.itemsize)
    is_last = th.ones(len(rows), dtype=th.bool, device=rows.device)
    is_last[:-1] = (rows[1:] != rows[:-1]).any(dim=1)
    ends = is_last.nonzero()[:, 0]
    lengths = ends.diff(prepend=ends.new_full((1,), -1))
    longest = int(lengths.max())
    if longest > th.iinfo(runs_type).max:
        allowed = f"a run has {longest} elements"
        raise ParameterError("rle_compress", "runs_type", runs_type, allowed, "Use a wider dtype.")
    width, runs = runs_type.itemsize, len(ends)
    pos_runs, _ = buffer.malloc(runs * (width + elem_type.itemsize))
    pos_elem = pos_runs + runs * width
    write_at(buffer, pos_runs, 0, lengths.to(_SIGNED[width]))  # the low bytes are those of an unsigned integer
    write_at(buffer, pos_elem, 0, rows[ends])
    return pos_runs, pos_elem, runs


def rle_decompress(
    buffer: RawBuffer,
    pos_runs: int,
    pos_elem: int,
    run_length: int,
    elem_type: th.dtype,
    runs_type: th.dtype,
    arr_configs: Mapping[str, Any],
) -> th.Tensor:
    """Read what :func:`rle_compress` wrote, as a flat tensor of ``elem_type``.

    :param buffer: the buffer to read from
    :param pos_runs: position of the run lengths, in bytes
    :param pos_elem: position of the values, in bytes
    :param run_length: number of runs
    :param elem_type: dtype of the values
    :param runs_type: dtype of the run lengths
    :param arr_configs: ``size`` or ``shape`` of the tensor
    :raise PayloadError: if the run lengths do not add up to the size
    """
    width, item = runs_type.itemsize, elem_type.itemsize
    lengths = read_at(buffer, pos_runs, 0, run_length * width, th.uint8).clone().view(_SIGNED[width]).to(th.int64)
    if width < 8:
        lengths &= (1 << 8 * width) - 1
    size = arr_config_length(arr_configs)
    if bool((lengths < 1).any()) or int(lengths.sum()) != size:
        problem = f"its run lengths do not add up to {size} elements"
        raise PayloadError("rle", run_length * (width + item), problem)
    values = read_at(buffer, pos_elem, 0, run_length * item, th.uint8).view(run_length, item)
    return th.repeat_interleave(values, lengths, dim=0, output_size=size).reshape(-1).view(elem_type)

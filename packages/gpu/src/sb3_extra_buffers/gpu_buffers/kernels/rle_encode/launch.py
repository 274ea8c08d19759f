"""Starts the kernels that make run-length payloads."""

from __future__ import annotations

import torch

from sb3_extra_buffers.gpu_buffers.kernels.elements import end_nbytes
from sb3_extra_buffers.gpu_buffers.kernels.options import launch_device, launch_options
from sb3_extra_buffers.gpu_buffers.kernels.rle_encode import kernel
from sb3_extra_buffers.gpu_buffers.kernels.rle_encode.measured import Measured, payload_lengths

#: Bytes of a row that one program looks at. With twice as many, writing takes twice the registers, and spills some.
BLOCK = 512
#: For each thread.
REGISTERS = 64


def measure(rows: torch.Tensor, *, item: int, block: int = BLOCK) -> Measured:
    """Find out how long the payloads of rows will be, without waiting for the device.

    :param rows: ``uint8``, the bytes of each contiguous
    :param item: bytes of an element: 1, 2, 4, 8 or 16
    :param block: bytes that one program looks at, a power of two of 16 or more; the same for :func:`write`
    """
    number, nbytes = rows.shape
    count = nbytes // item
    width = end_nbytes("rle_encode", count, item)
    tiles = -(-nbytes // block)
    counts = torch.empty((number, tiles), dtype=torch.int32, device=rows.device)
    if number:
        with launch_device(rows):
            kernel.count_runs[(number * tiles,)](
                rows,
                counts,
                count,
                rows.stride(0),
                tiles,
                ITEM=item,
                BLOCK=block,
                **launch_options(REGISTERS),
            )
    through = torch.cumsum(counts, 1, dtype=torch.int64)
    return Measured(payload_lengths(through[:, -1], nbytes, width + item), through - counts)


def write(
    rows: torch.Tensor,
    measured: Measured,
    offsets: torch.Tensor,
    out: torch.Tensor,
    *,
    item: int,
    block: int = BLOCK,
) -> None:
    """Write the payloads of rows, without waiting for the device.

    :param rows: what was measured
    :param measured: what was found
    :param offsets: ``int64``, where in ``out`` each payload begins; multiples of 16, room for its length behind each
    :param out: ``uint8``, contiguous, its address a multiple of 16
    :param item: bytes of an element
    :param block: bytes that one program looks at
    """
    number, nbytes = rows.shape
    count = nbytes // item
    tiles = -(-nbytes // block)
    if not number:
        return
    with launch_device(rows):
        kernel.write_payloads[(number * tiles,)](
            rows,
            measured.notes,
            measured.lengths,
            offsets,
            out,
            count,
            rows.stride(0),
            tiles,
            ITEM=item,
            WIDTH=end_nbytes("rle_encode", count, item),
            BLOCK=block,
            **launch_options(REGISTERS),
        )

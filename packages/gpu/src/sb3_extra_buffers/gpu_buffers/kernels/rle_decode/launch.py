"""Starts the kernel that decodes run-length payloads."""

from __future__ import annotations

import torch

from sb3_extra_buffers.gpu_buffers.kernels.elements import end_nbytes
from sb3_extra_buffers.gpu_buffers.kernels.options import launch_device, launch_options
from sb3_extra_buffers.gpu_buffers.kernels.rle_decode import kernel

#: Bytes of a cell that one program makes: sixteen for each thread, which is one store.
BLOCK = 2048
#: For each thread.
REGISTERS = 64


def decode(
    addresses: torch.Tensor,
    lengths: torch.Tensor,
    out: torch.Tensor,
    status: torch.Tensor,
    *,
    count: int,
    item: int,
    scale: float | None = None,
    block: int = BLOCK,
) -> None:
    """Decode payload ``i`` into row ``i``, without waiting for the device.

    All tensors are on one device. What a damaged payload leaves in its row is undefined; the other rows are right.

    :param addresses: ``int64``, where payloads are on the device; multiples of 16
    :param lengths: ``int64`` or ``int32``, bytes of each payload
    :param out: a row for each, its bytes contiguous: ``uint8`` of ``count * item``, or ``float32`` of ``count``
        elements with a ``scale``. If a row and the step from row to row are multiples of 16 bytes, stores are wide
    :param status: one ``int32``; if payloads are damaged, it becomes one more than the largest index of them
    :param count: elements of a cell
    :param item: bytes of an element: 1, 2, 4, 8 or 16
    :param scale: rows are ``float32``, each unsigned byte times this; only for elements of one byte
    :param block: bytes that one program makes, a power of two of 16 or more
    """
    width = end_nbytes("rle_decode", count, item)
    tiles = -(-count * item // block)
    if not len(addresses):
        return
    with launch_device(out):
        kernel.decode_cells[(len(addresses) * tiles,)](
            addresses,
            lengths,
            out,
            status,
            count,
            out.stride(0),
            tiles,
            1.0 if scale is None else scale,
            ITEM=item,
            WIDTH=width,
            SCALED=scale is not None,
            BLOCK=block,
            **launch_options(REGISTERS),
        )

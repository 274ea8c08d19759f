"""Copies uncompressed cells of a batch with Triton, each from its own address."""

from __future__ import annotations

import torch
import triton.language as tl

from sb3_extra_buffers.gpu_buffers.kernels.jit import jit
from sb3_extra_buffers.gpu_buffers.kernels.launch import launch_device, launch_options

#: Bytes of a cell that one program copies: sixteen per thread, which is one load and one store.
BLOCK = 2048
#: Registers per thread.
REGISTERS = 64


def copy(addresses: torch.Tensor, out: torch.Tensor, *, nbytes: int, block: int = BLOCK) -> None:
    """Copy cell ``i`` into row ``i``, without waiting for the device.

    :param addresses: ``int64``, addresses of the cells on the device; multiples of 16
    :param out: one contiguous row per cell: ``uint8``, or ``float32``, which receives each byte as a float. Stores are
        wide if the row size and the row stride are multiples of 16
    :param nbytes: size of a cell
    :param block: bytes that one program copies, a power of two of at least 16
    """
    tiles = -(-nbytes // block)
    if not len(addresses):
        return
    with launch_device(out):
        copy_cells[(len(addresses) * tiles,)](
            addresses, out, nbytes, out.stride(0), tiles, BLOCK=block, **launch_options(REGISTERS)
        )


@jit
def copy_cells(
    addresses: tl.tensor,
    out: tl.tensor,
    nbytes: tl.tensor,
    stride: tl.tensor,
    tiles: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Copy one tile of one cell."""
    cell = tl.program_id(0) // tiles
    begin = (tl.program_id(0) % tiles).to(tl.int64) * BLOCK
    source = tl.multiple_of(tl.load(addresses + cell).to(tl.pointer_type(tl.uint8)), 16)
    byte = tl.arange(0, BLOCK)
    inside = byte < tl.minimum(nbytes - begin, BLOCK).to(tl.int32)
    value = tl.load(source + begin + byte, mask=inside, other=0)
    tl.store(out + cell.to(tl.int64) * stride + begin + byte, value.to(out.dtype.element_ty), mask=inside)

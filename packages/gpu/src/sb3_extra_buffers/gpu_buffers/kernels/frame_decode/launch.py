"""Starts the kernel that decodes chunks of frames."""

from __future__ import annotations

import torch

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.frames.packing import count_dtype
from sb3_extra_buffers.gpu_buffers.kernels.frame_decode import kernel
from sb3_extra_buffers.gpu_buffers.kernels.frame_decode.needs import Needs
from sb3_extra_buffers.gpu_buffers.kernels.options import launch_device, launch_options

#: Bytes of a frame that are copied at once: sixteen for each thread, which is one store.
BLOCK = 2048
#: For each thread.
REGISTERS = 128


def decode(
    addresses: torch.Tensor,
    lengths: torch.Tensor,
    sizes: torch.Tensor,
    bases: torch.Tensor,
    needs: Needs,
    scratch: torch.Tensor,
    out: torch.Tensor,
    status: torch.Tensor,
    *,
    frame_nbytes: int,
    group: int,
    stride: int,
    alignment: int = 1,
    block: int = BLOCK,
) -> None:
    """Decode chunks and write the frames that are needed to their places, without waiting for the device.

    All tensors are on one device. Byte ``p`` of a frame goes to ``target + p // group * stride + p % group``: frames
    that alternate pixel by pixel in an observation have a group for each pixel, others are one group. Of a damaged
    chunk, frames from the damage on are not written.

    :param addresses: ``int64``, where chunks are on the device; multiples of 16
    :param lengths: ``int64`` or ``int32``, bytes of each chunk
    :param sizes: ``int32``, frames of each chunk
    :param bases: ``int64``, where the frame is that the first patch of each chunk is made on
    :param needs: which frames are needed, and where
    :param scratch: ``uint8``, a frame for each chunk, contiguous
    :param out: ``uint8``, contiguous
    :param status: one ``int32``; if chunks are damaged, it becomes one more than the largest index of them
    :param frame_nbytes: size of a frame
    :param group: bytes of a frame that stay together
    :param stride: from group to group
    :param alignment: a power of two that divides the address of every base and every target; with 16, copies are wide
    :param block: bytes that are copied at once, a power of two
    """
    last = (frame_nbytes - 1) // group * stride
    if last >= 1 << 31:
        raise ParameterError("frame_decode", "stride", stride, "a frame must lie within two gibibytes")
    if not len(addresses):
        return
    # A whole frame is copied as groups of one byte that are one byte apart: that is one compilation for every size.
    group, stride = (1, 1) if group >= frame_nbytes or group == stride else (group, stride)
    with launch_device(out):
        kernel.decode_chunks[(len(addresses),)](
            addresses,
            lengths,
            sizes,
            bases,
            needs.begin,
            needs.frame,
            needs.target,
            scratch,
            out,
            status,
            frame_nbytes,
            WIDTH=count_dtype(frame_nbytes).itemsize,
            GROUP=group,
            STRIDE=stride,
            ALIGNMENT=alignment,
            BLOCK=block,
            **launch_options(REGISTERS),
        )

"""How kernels are compiled and launched: threads and registers."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def launch_options(registers: int, *, is_hip: bool = torch.version.hip is not None) -> dict[str, int | bool]:
    """What every launch says besides its arguments.

    :param registers: how many a thread may have on NVIDIA. Left to itself, the compiler takes a few more now and then,
        and fewer programs run at the same time. ``scripts/compile_kernels.py`` shows that nothing is spilled for it
    :param is_hip: whether this is for AMD, whose warps have 64 threads, or for NVIDIA, whose warps have 32
    """
    # 128 threads each: a tile of 2,048 bytes is then one store of sixteen bytes for each of them.
    threads = {"num_warps": 2} if is_hip else {"num_warps": 4, "maxnreg": registers}
    # Nothing is multiplied and added here. Said so, because Triton warns of a default that will change.
    return {**threads, "enable_fp_fusion": False}


def launch_device(tensor: torch.Tensor) -> AbstractContextManager[object]:
    """Makes the device of a tensor the current one: that is where Triton launches, whatever it is given.

    :param tensor: one of those that the kernel is given
    """
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()

"""Torch devices: resolve a name, check that the device exists, and what it supports."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec

import torch as th

from sb3_extra_buffers.errors import DeviceError

CPU = th.device("cpu")
#: Payloads begin at multiples of this: wide loads of kernels and nvCOMP require it.
ALIGNMENT = 16


def aligned(nbytes: int) -> int:
    """A size rounded up to the next multiple of :data:`ALIGNMENT`."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def as_device(device: th.device | str | None) -> th.device:
    """Resolve a device, with its index. ``"auto"`` is the device that Stable-Baselines3 would choose.

    :param device: its name
    :raise DeviceError: if it does not exist here
    """
    if device is None or device == "auto":
        device = "cuda" if th.cuda.is_available() else "cpu"
    try:
        # Raises if the device is missing, and returns it with its index.
        found = th.empty(0, dtype=th.uint8, device=device).device
    except (RuntimeError, AssertionError, TypeError) as error:  # RuntimeError also for backends missing in torch
        # The first sentence of a long message.
        problem = re.split(r"[.:] |\n", str(error).strip())[0].rstrip(".")[:120] or type(error).__name__
        raise _absent(device, problem) from error
    if found.type == "meta":
        raise _absent(device, "it stores no data")
    return found


def _absent(device: th.device | str, problem: str) -> DeviceError:
    hint = f"Devices here: {', '.join(_present())}."
    return DeviceError(str(device), f"it is not available here ({problem})", hint)


def is_host(device: th.device) -> bool:
    """Whether this process can read the memory of the device directly."""
    return device == CPU


def on_host(tensor: th.Tensor) -> th.Tensor:
    """The same tensor on the host; no copy if it is there already."""
    return tensor.to(CPU)


def has_kernels(device: th.device) -> bool:
    """Whether Triton kernels run on the device. With Triton's interpreter, which is for tests, they run on the CPU."""
    is_known = device.type == "cuda" or (device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1")
    return is_known and find_spec("triton") is not None


def _present() -> list[str]:
    names = ["cpu"]
    names += [f"cuda:{number}" for number in range(th.cuda.device_count())]
    if th.backends.mps.is_available():
        names.append("mps")
    return names

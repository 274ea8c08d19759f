"""Which torch device is meant, and whether it is there."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec

import torch as th

from sb3_extra_buffers.errors import DeviceError

CPU = th.device("cpu")
#: Where a payload may begin: what wide loads of kernels and nvCOMP ask for.
ALIGNMENT = 16


def as_device(device: th.device | str | None) -> th.device:
    """A device that exists. ``"auto"`` is what Stable-Baselines3 would take, with its number if it has several.

    :param device: its name
    """
    if device is None or device == "auto":
        device = "cuda" if th.cuda.is_available() else "cpu"
    try:
        # Says what is missing, and with which number the device is known from now on.
        found = th.empty(0, dtype=th.uint8, device=device).device
    except (RuntimeError, AssertionError, TypeError) as error:  # RuntimeError also for backends that torch lacks
        # torch goes on to explain itself at length.
        problem = re.split(r"[.:] |\n", str(error).strip())[0].rstrip(".")[:120] or type(error).__name__
        raise _absent(device, problem) from error
    if found.type == "meta":
        raise _absent(device, "it holds no bytes")
    return found


def _absent(device: th.device | str, problem: str) -> DeviceError:
    hint = f"Devices here: {', '.join(_present())}."
    return DeviceError(str(device), f"it cannot hold anything here ({problem})", hint)


def is_host(device: th.device) -> bool:
    """Whether this process sees what is there."""
    return device == CPU


def on_host(tensor: th.Tensor) -> th.Tensor:
    """The same bytes on the host; no copy if they are there already."""
    return tensor.to(CPU)


def has_kernels(device: th.device) -> bool:
    """Whether Triton can be used there. Its interpreter, which is for tests, works on the CPU."""
    is_known = device.type == "cuda" or (device.type == "cpu" and os.environ.get("TRITON_INTERPRET") == "1")
    return is_known and find_spec("triton") is not None


def _present() -> list[str]:
    names = ["cpu"]
    names += [f"cuda:{number}" for number in range(th.cuda.device_count())]
    if th.backends.mps.is_available():
        names.append("mps")
    return names

"""Real devices: which there are, and what tests on them share."""

import numpy as np
import pytest
import torch as th
from gpu_player import ACTIONS
from gymnasium import spaces

HAS_CUDA = th.cuda.is_available()
DEVICES = [name for name, is_there in (("cuda", HAS_CUDA), ("mps", th.backends.mps.is_available())) if is_there]
SCREEN = spaces.Box(0, 255, (4, 84, 84), np.uint8)

needs_device = [
    pytest.mark.gpu,
    pytest.mark.skipif(not DEVICES, reason="torch finds no CUDA, ROCm or MPS device here"),
]
needs_cuda = [
    pytest.mark.gpu,
    pytest.mark.skipif(not HAS_CUDA, reason="torch finds no CUDA or ROCm device here"),
]
#: Without one, tests have a name and are skipped.
on_each_device = pytest.mark.parametrize("device", DEVICES or ["cuda"])


def expect_same(found, expected, device):
    """A batch on a device is bit-equal to one on the CPU."""
    for name, ours, theirs in zip(expected._fields, found, expected):
        for key in theirs if isinstance(theirs, dict) else [None]:
            one, other = (ours, theirs) if key is None else (ours[key], theirs[key])
            if other is not None:
                assert one.device.type == device, (name, key)
                assert th.equal(one.cpu(), other), (name, key)


def sampled(buffer, size=40, seed=0):
    """A batch, always the same."""
    np.random.seed(seed)
    return buffer.sample(size)


def screens(count, seed=0):
    """Frames in which a few things move over a background, stacked."""
    random = np.random.default_rng(seed)
    background = np.repeat(random.integers(0, 99, (84, 12), np.uint8), 7, axis=1)
    shown = np.repeat(background[np.newaxis], count + 4, axis=0)
    for thing in range(6):
        for step in range(count + 4):
            row, column = (7 * thing + step) % 76, (11 * thing + 3 * step) % 76
            shown[step, row : row + 8, column : column + 8] = 200 + thing
    return np.lib.stride_tricks.sliding_window_view(shown, 4, axis=0).transpose(0, 3, 1, 2)


def filled(kind, device, transitions, **options):
    """A full buffer of these screens."""
    buffer, shown = kind(transitions, SCREEN, ACTIONS, device, 1, **options), screens(transitions)
    for step in range(transitions):
        pair = (np.ascontiguousarray(shown[step + part : step + part + 1]) for part in (0, 1))
        buffer.add(*pair, np.zeros(1), np.zeros(1), np.zeros(1), [{}])
    return buffer

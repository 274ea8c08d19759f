"""Whole buffers whose batches are made by the kernels themselves, in Triton's interpreter."""

from importlib.util import find_spec

import pytest

from sb3_extra_buffers.testing.processes import run_python

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")

SCRIPT = """
import numpy as np, torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer
from sb3_extra_buffers.errors import PayloadError

shape, axis = {shape}, {axis}
space, actions = spaces.Box(0, 255, shape, np.uint8), spaces.Discrete(2)
options = {options}
ours = GpuReplayBuffer(24, space, actions, "cpu", 2, decode_on="device", **options)
theirs = ReplayBuffer(24, space, actions, "cpu", 2)
random = np.random.default_rng(0)
side = shape[1]
frames = [np.zeros((2, side, side), np.uint8)]
for step in range(22):
    frame = frames[-1].copy()
    frame[:, random.integers(side), random.integers(side)] = random.integers(256)
    frames.append(frame)
for step in range(20):
    obs, following = (np.stack(frames[first : first + 2], axis=axis) for first in (step, step + 1))
    for buffer in (ours, theirs):
        buffer.add(obs, following, np.zeros(2), np.zeros(2), np.zeros(2), [{{}}, {{}}])
for size in (1, 5):
    np.random.seed(size)
    expected = theirs.sample(size)
    np.random.seed(size)
    found = ours.sample(size)
    assert th.equal(found.observations, expected.observations)
    assert th.equal(found.next_observations, expected.next_observations)
heap = ours.shared_heap
cells = np.arange(heap.cells)
cells = cells[heap.locate(cells)[1] > 0]
for payload in heap.slices(*heap.locate(cells)):
    payload.fill_(255)
try:
    ours.sample(5)
except PayloadError as error:
    print("damage was noticed:", error)
"""


@pytest.mark.parametrize(
    ("options", "codec", "shape", "axis"),
    [
        ({"compression_method": "rle"}, "rle", (2, 9, 9), 1),
        ({"compression_method": "auto", "layout": "frames"}, "frames", (2, 9, 9), 1),
        ({"compression_method": "auto", "layout": "frames"}, "frames", (9, 9, 2), 3),
        ({"compression_method": "auto", "layout": "frames"}, "frames", (12, 12, 2), 3),  # interleaved by a kernel
    ],
)
def test_batches_of_kernels_are_those_of_stable_baselines3(options, codec, shape, axis, monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    printed = run_python(SCRIPT.format(options=options, shape=shape, axis=axis))
    assert "damage was noticed" in printed
    assert codec in printed


def test_uncompressed_batches_of_kernels_are_those_of_stable_baselines3(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    undamaged = SCRIPT[: SCRIPT.index("heap = ours.shared_heap")] + "print('all are equal')"
    for options in ({"compression_method": "none"}, {"compression_method": "none", "heap_bytes": 1 << 16}):
        assert "all are equal" in run_python(undamaged.format(options=options, shape=(2, 9, 9), axis=1))


STRIDED = """
import torch as th
from sb3_extra_buffers.gpu_buffers import BaseGpuBuffer, RawBuffer, create_observation_store, devices

devices.is_host = lambda device: False  # on the CPU itself, the host encodes
wide = (th.arange(4000) // 7).to(th.uint8)
buffer, base = RawBuffer(8000), BaseGpuBuffer("rle", flatten_config={"size": 2000})
metadata = base.compress(wide[::2], buffer, 0)
assert th.equal(base.decompress(buffer, metadata, th.uint8, th.uint16, base.flatten_config), wide[::2].clone())
store = create_observation_store("rle", 2, 1, 2000, th.uint8, "cpu")
store.write(0, 0, wide[::2])
assert th.equal(store.read(0, 0), wide[::2].clone())
print("both are right")
"""


def test_kernels_encode_observations_with_a_stride_as_they_look(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert "both are right" in run_python(STRIDED)

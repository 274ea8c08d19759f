"""Memory is resident memory: what a process really holds when its buffer holds 20,000 transitions.

Each buffer is measured in a process of its own, which runs this file. Stable-Baselines3's buffer takes 1.1 GB for so
many; it grows with every transition alike, so it is measured with 2,000 and multiplied.
"""

import ctypes
import functools
import gc
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer

from sb3_extra_buffers.codecs import names
from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.testing.processes import run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")

CODEC = "zstd/-3" if "zstd" in names() else "gzip/1"
TRANSITIONS = 20_000
MEASURED_OF_SB3 = 2_000
N_ENVS = 8
OBSERVATIONS = 1_000
EPISODE = 125
WARM_UP = 2_000


#: Read after every lap. What is needed to read frames without numba is used again, but it takes some batches until it
#: is as large as the largest of them.
_BATCHES = 12
#: What a buffer may take, by layout, as a share of what Stable-Baselines3 takes; with the memory of a batch of 256.
SHARES = {"cells": 0.12, "frames": 0.04}
each_layout = pytest.mark.parametrize("layout", SHARES)


@each_layout
def test_20000_transitions_take_a_small_part_of_what_sb3_takes(layout):
    plain = grown("SB3", "", MEASURED_OF_SB3, wraps=0)["full"][0] * TRANSITIONS / MEASURED_OF_SB3
    # If this does not hold, SB3's buffer was not measured: two observations of 28,224 bytes per transition.
    assert plain == pytest.approx(TRANSITIONS * 2 * 84 * 84 * 4, rel=0.05)
    assert grown(CODEC, layout, TRANSITIONS, wraps=3)["full"][0] < SHARES[layout] * plain


@each_layout
def test_memory_stays_the_same_however_often_the_buffer_is_overwritten(layout):
    full = grown(CODEC, layout, TRANSITIONS, wraps=3)["full"]
    assert len(full) == 4
    assert max(full) < 1.06 * min(full)


@each_layout
def test_deleting_the_buffer_gives_its_memory_back(layout):
    found = grown(CODEC, layout, TRANSITIONS, wraps=3)
    assert found["left"] < 0.03 * found["full"][-1]


@functools.cache
def grown(codec, layout, transitions, wraps):
    """By how many bytes a fresh process grows: with a full buffer, after each further wrap, and without it again."""
    code = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='measured')['main'](*sys.argv[2:])"
    return json.loads(run_python(code, __file__, codec, layout, str(transitions), str(wraps)))


# What follows runs in the process that is measured.


def main(codec, layout, transitions, wraps):
    observations = mspacman() if can_play() else maze()
    # Libraries take the same memory for a million transitions as for a few. Used once before, they do not count.
    use(make(codec, layout, WARM_UP), observations)
    before = resident()
    buffer, full = make(codec, layout, int(transitions)), []
    for _ in range(1 + int(wraps)):
        use(buffer, observations)
        full.append(resident() - before)
    del buffer
    print(json.dumps({"full": full, "left": resident() - before}))


def make(codec, layout, transitions):
    space, actions = spaces.Box(0, 255, (4, 84, 84), np.uint8), spaces.Discrete(4)
    if codec == "SB3":
        return ReplayBuffer(transitions, space, actions, "cpu", N_ENVS)
    return CompressedReplayBuffer(transitions, space, actions, "cpu", N_ENVS, compression_method=codec, layout=layout)


def use(buffer, observations):
    """Go round the buffer once, as eight environments in different places of the same game would, and read batches."""
    at = np.arange(N_ENVS) * len(observations) // N_ENVS
    infos = [{}] * N_ENVS
    for step in range(1, buffer.buffer_size + 1):
        over = step % EPISODE == 0
        following = (at + (7 if over else 1)) % len(observations)
        # At the end of an episode, the next observation is not the one that follows.
        seen = observations[(at + 1) % len(observations)]
        buffer.add(observations[at], seen, np.zeros(N_ENVS), np.zeros(N_ENVS), np.full(N_ENVS, over), infos)
        at = following
    # The same rows after every lap: what reading takes depends on them, and only the buffer shall make a difference.
    np.random.seed(0)
    for _ in range(_BATCHES):
        buffer.sample(256)


def resident():
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc, which keeps freed memory for itself
    if trim is not None:
        trim(0)
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:"))


def can_play():
    return all(importlib.util.find_spec(module) for module in ("ale_py", "cv2"))


def mspacman():
    """What a random player of MsPacman sees."""
    import ale_py
    import gymnasium

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    game = gymnasium.wrappers.AtariPreprocessing(gymnasium.make("ALE/MsPacman-v5", frameskip=1))
    game.action_space.seed(0)
    frames = [game.reset(seed=0)[0]]
    while len(frames) < OBSERVATIONS + 3:
        frame, _, terminated, truncated, _ = game.step(game.action_space.sample())
        frames.append(game.reset()[0] if terminated or truncated else frame)
    return stacked(np.array(frames))


def maze():
    """Sprites that move through a maze: zstd at level -3 makes it 13.2 times smaller, and MsPacman 13.9 times.

    gzip at level 1 makes it 10.7 times smaller, and MsPacman 10.0 times.
    """
    random = np.random.default_rng(0)
    background = np.full((84, 84), 80, np.uint8)
    for top in range(0, 84, 7):
        for left in range(0, 84, 7):
            wall = np.s_[top : top + 7 : 6, left : left + 5] if random.random() < 0.6 else np.s_[top : top + 5, left]
            background[wall] = random.integers(100, 200)
            background[top + 3, left + 3] = random.integers(140, 200)
    background[73:] = 0
    frames = np.repeat(background[np.newaxis], OBSERVATIONS + 3, axis=0)
    sprites, places = random.integers(90, 255, (5, 6, 6), np.uint8), random.integers(0, 66, (5, 2))
    for index, frame in enumerate(frames):
        if index % 8 == 0:
            ways = random.integers(-2, 3, (5, 2))
        places = np.clip(places + ways, 0, 66)
        for sprite, (top, left) in zip(sprites, places):
            frame[top : top + 6, left : left + 6] = sprite
    return stacked(frames)


def stacked(frames):
    return np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(frames, 4, axis=0).transpose(0, 3, 1, 2))

"""Frames on a heap with a budget: what was dropped is never sampled, whatever the frames look like."""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer

from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.errors import HeapFullError

SPACE, ACTIONS = spaces.Box(0, 255, (4, 32, 32), np.uint8), spaces.Discrete(2)


def noise(n_envs, steps, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n_envs, steps, 32, 32), np.uint8)


def play(frames, rows=400, capacity=200_000, heap="ring"):
    """Add all stacks of these frames; after each step, what is sampled must be what was added."""
    n_envs, steps = len(frames), frames.shape[1] - 4
    ours, theirs = (
        kind(rows * n_envs, SPACE, ACTIONS, device="cpu", n_envs=n_envs, **storage)
        for kind, storage in (
            (CompressedReplayBuffer, {"heap": heap, "heap_kwargs": {"capacity": capacity}, "layout": "frames"}),
            (ReplayBuffer, {}),
        )
    )
    fewest = rows
    for step in range(steps):
        obs, next_obs = (np.ascontiguousarray(frames[:, begin : begin + 4]) for begin in (step, step + 1))
        for buffer in (ours, theirs):
            buffer.add(obs, next_obs, np.zeros((n_envs, 1)), np.full(n_envs, step), np.zeros(n_envs), [{}] * n_envs)
        batch = ours.sample(16)
        row = batch.rewards[:, 0].numpy().astype(int) % rows
        for found, expected in (
            (batch.observations, theirs.observations),
            (batch.next_observations, theirs.next_observations),
        ):
            same = (found.numpy()[:, np.newaxis] == expected[row]).all(axis=(2, 3, 4)).any(axis=1)
            assert same.all(), step
        kept = ours._kept_rows()
        fewest = min(fewest, kept) if step >= rows else fewest
        newest = (ours.pos - 1 - np.arange(kept)) % rows
        np.testing.assert_array_equal(ours.observations[newest[-1]], theirs.observations[newest[-1]])
    assert ours._storage.evicted_cells > 0
    return fewest


@pytest.mark.parametrize("heap", ["ring", "mmap"])
def test_the_newest_transitions_stay(heap):
    assert 100 < play(noise(1, 1000), heap=heap) < 250


def test_black_screens_do_not_hide_what_was_dropped():
    frames = noise(1, 1000)
    for begin in range(20, 1000, 40):
        frames[:, begin : begin + 8] = 0
    assert play(frames) > 100


@pytest.mark.parametrize("pause", range(28, 38))
def test_an_environment_that_stands_still_is_stored_again_when_its_frames_are_dropped(pause):
    frames = noise(2, 700)
    frames[0, pause : pause + 400] = frames[0, pause]
    assert play(frames, capacity=300_000) > 50


def test_frames_that_never_fit_are_an_error_and_not_the_end():
    frames = noise(1, 400)
    frames[:, 40:] = 7
    frames[:, 40:, 0, 0] = np.arange(360) % 256
    buffer = CompressedReplayBuffer(
        200, SPACE, ACTIONS, device="cpu", heap="ring", heap_kwargs={"capacity": 12_000}, layout="frames"
    )
    refused, added = 0, {}
    for step in range(390):
        obs, next_obs = (frames[:, begin : begin + 4].copy() for begin in (step, step + 1))
        try:
            buffer.add(obs, next_obs, np.zeros((1, 1)), np.array([step]), np.zeros(1), [{}])
            added[step] = obs
        except HeapFullError:
            refused += 1
        if step > 100:
            batch = buffer.sample(8)
            for reward, found in zip(batch.rewards[:, 0].tolist(), batch.observations.numpy()):
                np.testing.assert_array_equal(found, added[int(reward)][0])
    assert 0 < refused < 10

"""Buffers that benchmarks compare are filled by one stream, and hold what each would hold by itself."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks._lib.atari import Transitions
from benchmarks._lib.buffers import (
    ROLLOUT_STEPS,
    SB3,
    check_replay,
    check_rollout,
    fill_replay,
    fill_replays,
    make_replay,
    make_rollouts,
)

NAMES = [SB3, "gzip1", "cells:rle", "frames/speed"]


@pytest.fixture(scope="module")
def observations() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 4, (60, 4, 84, 84)).astype(np.uint8)


@pytest.mark.parametrize("n_envs", [1, 8])
def test_replay_buffers_hold_what_each_gets_by_itself_and_go_on_alike(observations: np.ndarray, n_envs: int) -> None:
    source, alone = Transitions(observations, n_envs), Transitions(observations, n_envs)
    buffers = {name: make_replay(name, 64, n_envs) for name in NAMES}
    fill_replays(buffers.values(), source)
    plain = make_replay(SB3, 64, n_envs)
    fill_replay(plain, alone)
    twins = {name: source.twin() for name in NAMES}
    for _ in range(2):
        for name, buffer in buffers.items():
            assert (buffer.pos, buffer.full) == (plain.pos, plain.full)
            check_replay(name, buffer, plain, 16)
        plain.add(*alone.step())
        for name, buffer in buffers.items():
            buffer.add(*twins[name].step())


def test_rollouts_are_complete_and_the_same(observations: np.ndarray) -> None:
    rollouts = make_rollouts(NAMES, observations)
    for name, rollout in rollouts.items():
        assert (rollout.pos, rollout.full) == (ROLLOUT_STEPS, True)
        check_rollout(name, rollout, rollouts[SB3], 64)
    assert rollouts[SB3].rewards.any()

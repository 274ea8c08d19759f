"""Small Pong is Pong: reproducible, seen as it is, with a bonus that no score contains."""

from __future__ import annotations

import numpy as np
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.monitor import Monitor

from examples._lib.small_pong import BONUS, SCREEN, ReturnBonus, SmallPong, make_pong_learner


def play(steps, seed, env):
    random = np.random.default_rng(seed)
    frames, rewards = [env.reset(seed=seed)[0]], []
    for _ in range(steps):
        frame, reward, terminated, truncated, _ = env.step(random.integers(3))
        frames.append(frame)
        rewards.append(float(reward))
        assert not terminated
        assert not truncated
    return np.stack(frames), rewards


def test_the_same_seed_is_the_same_game():
    first, again, other = (play(60, seed, SmallPong()) for seed in (3, 3, 4))
    assert np.array_equal(first[0], again[0])
    assert first[1] == again[1]
    assert not np.array_equal(first[0], other[0])


def test_the_court_is_black_and_shows_two_paddles_and_a_ball():
    frames, _ = play(60, 3, SmallPong())
    assert frames.shape[1:] == (SCREEN, SCREEN, 1)
    assert frames.dtype == np.uint8
    assert (frames == 0).mean() > 0.97
    halves = frames[30:, :, : SCREEN // 2], frames[30:, :, SCREEN // 2 :]
    assert all(half.any(axis=(1, 2, 3)).any() for half in halves)


def test_returned_balls_earn_a_bonus_that_the_score_does_not_contain():
    plain, shaped = Monitor(SmallPong()), Monitor(SmallPong())
    _, scores = play(600, 3, plain)
    _, rewards = play(600, 3, ReturnBonus(shaped))
    bonuses = [reward - score for reward, score in zip(rewards, scores, strict=True)]
    assert set(bonuses) == {0.0, BONUS}
    assert plain.rewards == shaped.rewards  # what Monitor will add up


def test_a_learner_computes_the_same_twice():
    learners = [make_pong_learner(5, RolloutBuffer) for _ in range(2)]
    observation = learners[0].env.reset()
    assert np.array_equal(observation, learners[1].env.reset())
    values = [learner.policy.predict_values(learner.policy.obs_to_tensor(observation)[0]) for learner in learners]
    assert values[0].equal(values[1])

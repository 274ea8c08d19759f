"""Sequences are contiguous pieces of one episode of one environment, and n-step returns work for Dict observations."""

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import NStepReplayBuffer

from sb3_extra_buffers.compressed import (
    CompressedDictNStepReplayBuffer,
    CompressedDictPrioritizedReplayBuffer,
    CompressedDictReplayBuffer,
    CompressedHerReplayBuffer,
    CompressedNStepReplayBuffer,
    CompressedPrioritizedReplayBuffer,
    CompressedReplayBuffer,
    SequenceSamples,
)
from sb3_extra_buffers.errors import BufferStateError, ParameterError

ROWS, ENVS = 12, 3
ACTIONS = spaces.Discrete(5)
VECTOR = spaces.Box(-np.inf, np.inf, (4,), np.float32)
GOALS = spaces.Dict(observation=VECTOR, achieved_goal=VECTOR, desired_goal=VECTOR)
OPTIMIZED = {"optimize_memory_usage": True, "handle_timeout_termination": False}
#: What the next observation differs by.
LATER = np.array([0, 0, 1, 1], np.float32)
#: Class, space, arguments.
KINDS = {
    "replay": (CompressedReplayBuffer, VECTOR, {}),
    "prefetch": (CompressedReplayBuffer, VECTOR, {"prefetch": True}),
    "optimized": (CompressedReplayBuffer, VECTOR, OPTIMIZED),
    "dict": (CompressedDictReplayBuffer, GOALS, {}),
    "n-step": (CompressedNStepReplayBuffer, VECTOR, {}),
    "dict n-step": (CompressedDictNStepReplayBuffer, GOALS, {}),
    "her": (CompressedHerReplayBuffer, GOALS, {"env": None}),
    "prioritized": (CompressedPrioritizedReplayBuffer, VECTOR, {}),
    "dict prioritized": (CompressedDictPrioritizedReplayBuffer, GOALS, {}),
}


def play(buffer, steps, is_dict):
    """Add steps whose observations say environment, episode, and the step in it. Returns the number of each step."""
    rng, episode, now = np.random.default_rng(0), np.zeros(ENVS), np.zeros(ENVS)
    for number in range(steps):
        place = np.stack([np.arange(ENVS), episode, now, np.full(ENVS, number)], axis=1).astype(np.float32)
        done = rng.random(ENVS) < 0.2
        following = place + LATER
        infos = [{"TimeLimit.truncated": bool(late)} for late in done & (rng.random(ENVS) < 0.5)]
        obs, next_obs = (dict.fromkeys(GOALS.spaces, one) if is_dict else one for one in (place, following))
        buffer.add(obs, next_obs, np.full(ENVS, number % 5), place[:, 2] + 0.5, done, infos)
        episode, now = episode + done, np.where(done, 0, now + 1)


@pytest.mark.parametrize("steps", [3, ROWS, 2 * ROWS + 5])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_is_of_one_environment_and_one_episode_without_gaps(kind, steps):
    cls, space, arguments = KINDS[kind]
    buffer = cls(ROWS * ENVS, space, ACTIONS, device="cpu", n_envs=ENVS, **arguments)
    play(buffer, steps, isinstance(space, spaces.Dict))
    np.random.seed(0)
    length, burn_in = 4, 3
    oldest = max(0, steps - ROWS) + (kind == "optimized" and steps >= ROWS)
    starts = set()
    for _ in range(6):
        found = buffer.sample_sequences(64, length, burn_in)
        assert type(found) is SequenceSamples
        obs, next_obs = found.observations, found.next_observations
        if isinstance(space, spaces.Dict):
            obs, next_obs = obs["achieved_goal"], next_obs["achieved_goal"]
        obs, next_obs = obs.numpy(), next_obs.numpy()
        mask, loss_mask = found.mask.numpy(), found.loss_mask.numpy()
        assert obs.shape == (64, 7, 4)
        assert found.actions.shape == (64, 7, 1)
        assert found.rewards.shape == found.dones.shape == (64, 7, 1)
        assert np.array_equal(loss_mask, mask & (np.arange(7) >= burn_in))
        assert mask[:, burn_in].all()
        for row in range(64):
            (places,) = np.nonzero(mask[row])
            assert np.array_equal(places, np.arange(places[0], places[-1] + 1))
            here = obs[row, places]
            assert (here[:, :2] == here[0, :2]).all()  # environment and episode
            assert np.array_equal(np.diff(here[:, 2:], axis=0), np.ones((len(places) - 1, 2)))
            assert (here[:, 3] >= oldest).all()
            assert np.array_equal(found.rewards[row, places, 0].numpy(), here[:, 2] + 0.5)
            assert np.array_equal(found.actions[row, places, 0].numpy(), here[:, 3] % 5)
            is_last = np.arange(len(places)) == len(places) - 1
            is_done = found.dones[row, places, 0].numpy() != 0
            if kind != "optimized":
                assert np.array_equal(next_obs[row, places], here + LATER)
            else:
                assert np.array_equal(next_obs[row, places][~is_last], here[~is_last] + LATER)
            assert not is_done[~is_last].any()
            # It is as long as it can be.
            dones = buffer.dones[here[:, 3].astype(int) % ROWS, int(here[0, 0])]
            if places[-1] < 6:
                assert dones[-1] or here[-1, 3] == steps - 1
            if places[0] > 0:
                assert here[0, 2] == 0 or here[0, 3] == oldest
            begins = found.episode_starts[row].numpy()
            assert not begins[~mask[row]].any()
            assert np.array_equal(begins[places], (here[:, 2] == 0) & ((here[:, 3] > oldest) | (steps < ROWS)))
            assert not obs[row][~mask[row]].any()
            assert not next_obs[row][~mask[row]].any()
            starts.add((int(obs[row, burn_in, 3]), int(obs[row, burn_in, 0])))
    expected = {(number, env) for number in range(oldest, steps) for env in range(ENVS)}
    assert starts == expected


def test_all_observations_are_read_by_one_call(monkeypatch, screen):
    buffer = CompressedReplayBuffer(100, screen(32), ACTIONS, device="cpu")
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (41, 1, 4, 32, 32)).astype(np.uint8)
    for number in range(40):
        buffer.add(images[number], images[number + 1], np.zeros(1), np.zeros(1), np.zeros(1), [{}])
    calls, read = [], buffer._storage.read_both
    monkeypatch.setattr(
        buffer._storage, "read_both", lambda cells, *more: calls.append(len(cells)) or read(cells, *more)
    )
    found = buffer.sample_sequences(8, 5, 2)
    assert calls == [int(found.mask.sum())]
    assert found.observations.dtype == th.uint8
    (rows,) = np.nonzero(found.mask.all(axis=1).numpy())
    for row in rows:
        number = next(number for number in range(40) if np.array_equal(images[number, 0], found.observations[row, 0]))
        assert np.array_equal(found.observations[row].numpy(), images[number : number + 7, 0])


def test_sequences_are_normalized(normalizer):
    buffer = CompressedReplayBuffer(20, VECTOR, ACTIONS, device="cpu", n_envs=ENVS)
    play(buffer, 6, False)
    env = normalizer(VECTOR, ACTIONS, ENVS)
    found = []
    for normalize in (None, env):
        np.random.seed(0)
        found.append(buffer.sample_sequences(9, 2, env=normalize))
    plain, normal = found
    mask = plain.mask.numpy()
    expected = env.normalize_obs(plain.observations.numpy()).astype(np.float32)
    assert np.array_equal(normal.observations.numpy()[mask], expected[mask])
    assert np.array_equal(
        normal.rewards.numpy()[mask], env.normalize_reward(plain.rewards.numpy()).astype(np.float32)[mask]
    )


def test_sequences_take_evicted_steps_into_account():
    storage = {"compression_method": "none", "heap": "ring", "heap_kwargs": {"capacity": 4000}}
    wide = spaces.Box(-np.inf, np.inf, (100,), np.float32)
    buffer = CompressedReplayBuffer(50, wide, ACTIONS, device="cpu", **storage)
    for number in range(40):
        obs = np.full((1, 100), number, np.float32)
        buffer.add(obs, obs + 1, np.zeros(1), np.zeros(1), np.zeros(1), [{}])
    kept = buffer._kept_rows()
    assert kept < 40
    found = buffer.sample_sequences(100, 3, 3)
    assert found.observations[found.mask].min() == 40 - kept


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0, 3), "batch_size"),
        ((2, 0), "length"),
        ((2, 3, -1), "burn_in"),
        ((2, 1 << 40), "length"),
        ((2, 1.5), "length"),
    ],
)
def test_bad_requests_are_refused(arguments, named):
    buffer = CompressedReplayBuffer(20, VECTOR, ACTIONS, device="cpu", n_envs=ENVS)
    play(buffer, 3, False)
    with pytest.raises(ParameterError, match=f"{named}="):
        buffer.sample_sequences(*arguments)


def test_an_empty_buffer_has_no_sequences():
    buffer = CompressedReplayBuffer(20, VECTOR, ACTIONS, device="cpu")
    with pytest.raises(BufferStateError, match="sample 4 sequences"):
        buffer.sample_sequences(4, 2)


@pytest.mark.parametrize("key", ["observation", "desired_goal"])
def test_n_step_returns_of_dict_observations_are_those_of_stable_baselines3(
    key, walk, feed, same, normalizer, tmp_path
):
    settings = {"n_steps": 3, "gamma": 0.9}
    ours = CompressedDictNStepReplayBuffer(ROWS * ENVS, GOALS, ACTIONS, device="cpu", n_envs=ENVS, **settings)
    theirs = NStepReplayBuffer(ROWS * ENVS, VECTOR, ACTIONS, device="cpu", n_envs=ENVS, **settings)
    plain, by_key = normalizer(VECTOR, ACTIONS, ENVS), normalizer(GOALS, ACTIONS, ENVS, [key])
    by_key.obs_rms[key], by_key.ret_rms = plain.obs_rms, plain.ret_rms
    for number, step in enumerate(walk(GOALS, ACTIONS, ENVS, 3 * ROWS)):
        obs, next_obs, *rest = step
        feed(step, ours)
        feed((obs[key], next_obs[key], *rest), theirs)
        for env in (None, plain):
            samples = []
            for buffer, normalize in ((ours, env and by_key), (theirs, env)):
                np.random.seed(number)
                samples.append(buffer.sample(16, env=normalize))
            own, other = samples
            same(own.observations[key].numpy(), other.observations.numpy())
            same(own.next_observations[key].numpy(), other.next_observations.numpy())
            for name in ("actions", "dones", "rewards", "discounts"):
                same(getattr(own, name).numpy(), getattr(other, name).numpy(), name)
    ours.save(tmp_path)
    loaded = CompressedDictNStepReplayBuffer.load(tmp_path, device="cpu")
    assert (loaded.n_steps, loaded.gamma) == (3, 0.9)


def test_n_step_buffers_name_the_one_that_fits_the_space():
    with pytest.raises(ParameterError, match="Use CompressedDictNStepReplayBuffer"):
        CompressedNStepReplayBuffer(9, GOALS, ACTIONS)
    with pytest.raises(ParameterError, match="Use CompressedNStepReplayBuffer"):
        CompressedDictNStepReplayBuffer(9, VECTOR, ACTIONS)


@pytest.mark.parametrize("arguments", [{"n_steps": 0}, {"gamma": 2}, {"prefetch": True}, {"n_steps": True}])
def test_n_step_arguments_are_checked(arguments):
    with pytest.raises(ParameterError):
        CompressedDictNStepReplayBuffer(9, GOALS, ACTIONS, **arguments)

"""Replay buffers beside those of Stable-Baselines3: the same in, the same seed, the same out, bit for bit."""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer

from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedNStepReplayBuffer,
    CompressedReplayBuffer,
)

ROWS = 10
DISCRETE, BOX = spaces.Discrete(5), spaces.Box(-2, 2, (2,), np.float64)
OPTIMIZED = {"optimize_memory_usage": True, "handle_timeout_termination": False}

#: Their class, ours, action space, arguments of both, arguments of ours alone.
KINDS = {
    "plain": (ReplayBuffer, CompressedReplayBuffer, DISCRETE, {}, {}),
    "no timeouts": (ReplayBuffer, CompressedReplayBuffer, BOX, {"handle_timeout_termination": False}, {}),
    "optimized": (ReplayBuffer, CompressedReplayBuffer, BOX, OPTIMIZED, {}),
    "optimized with timeouts": (ReplayBuffer, CompressedReplayBuffer, DISCRETE, {}, {"optimize_memory_usage": True}),
    "dict": (DictReplayBuffer, CompressedDictReplayBuffer, BOX, {}, {}),
    "1 step": (NStepReplayBuffer, CompressedNStepReplayBuffer, BOX, {"n_steps": 1}, {}),
    "3 steps": (NStepReplayBuffer, CompressedNStepReplayBuffer, DISCRETE, {"n_steps": 3, "gamma": 0.9}, {}),
    "5 steps": (NStepReplayBuffer, CompressedNStepReplayBuffer, BOX, {"n_steps": 5, "gamma": 0.5}, {}),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
#: All that differ in how they store.
EVERY_LAYOUT = pytest.mark.parametrize("kind", ["plain", "optimized", "optimized with timeouts", "dict"])


@pytest.fixture
def pair(screen, composite):
    def pair(kind, n_envs, side=12, **storage):
        theirs, ours, actions, both, own = KINDS[kind]
        space = composite(side) if kind == "dict" else screen(side)
        size = ROWS * n_envs + n_envs - 1  # what does not make a row is left out
        return (
            ours(size, space, actions, device="cpu", n_envs=n_envs, **both, **own, **storage),
            theirs(size, space, actions, device="cpu", n_envs=n_envs, **both),
        )

    return pair


@pytest.fixture
def run(walk, feed, same_samples):
    """Two and a half times through the buffers, with samples all along."""

    def run(ours, theirs, steps=ROWS * 5 // 2, env=None, **walking):
        for number, step in enumerate(walk(ours.observation_space, ours.action_space, ours.n_envs, steps, **walking)):
            feed(step, ours, theirs)
            if number in (0, 5, ROWS - 1, ROWS, ROWS * 2 - 2, steps - 1):
                same_samples(ours, theirs, batch_size=(1, 7, 64)[number % 3], seed=number, env=env)

    return run


def in_arrays(same, ours, theirs):
    for name in ("observations", "next_observations"):
        found, expected = getattr(ours, name, None), getattr(theirs, name, None)
        if isinstance(expected, dict):
            same({key: np.asarray(array) for key, array in found.items()}, expected, name)
        elif expected is not None:
            same(np.asarray(found), expected, name)
    for name in ("actions", "rewards", "dones", "timeouts"):
        same(getattr(ours, name), getattr(theirs, name), name)


@EVERY_KIND
@pytest.mark.parametrize(
    ("n_envs", "side", "layout"),
    [(1, 12, "auto"), (3, 12, "auto"), (8, 12, "auto"), (3, 32, "cells"), (3, 32, "frames")],
)
def test_samples_are_those_of_the_original(kind, n_envs, side, layout, codec, pair, run):
    ours, theirs = pair(kind, n_envs, side, compression_method=codec, layout=layout)
    assert isinstance(ours, type(theirs))
    run(ours, theirs)


@EVERY_KIND
def test_samples_that_are_normalized_are_those_of_the_original(kind, codec, pair, run, normalizer):
    ours, theirs = pair(kind, 3, compression_method=codec)
    keys = ["scan", "image"] if kind == "dict" else None
    run(ours, theirs, env=normalizer(ours.observation_space, ours.action_space, 3, keys))


@EVERY_LAYOUT
@pytest.mark.parametrize("heap", ["ring", "mmap"])
def test_a_heap_with_room_enough_changes_nothing(kind, heap, codec, pair, run, tmp_path):
    place = {"capacity": 1 << 22} if heap == "ring" else {"folder": str(tmp_path)}
    ours, theirs = pair(kind, 3, compression_method=codec, heap=heap, heap_kwargs=place)
    run(ours, theirs)
    assert ours.memory_report().evicted == 0


@EVERY_LAYOUT
@pytest.mark.parametrize(
    "ends", [lambda number: 1, lambda number: 0.5, lambda number: number < ROWS], ids=["always", "often", "at first"]
)
def test_a_file_has_room_for_whatever_comes(kind, ends, pair, run, noise, tmp_path):
    ours, theirs = pair(kind, 3, compression_method="none", heap="mmap", heap_kwargs={"folder": str(tmp_path)})
    run(ours, theirs, steps=ROWS * 15 // 2, ends=ends, draw=noise)
    assert ours.memory_report().evicted == 0


@EVERY_LAYOUT
@pytest.mark.parametrize(
    ("n_envs", "side", "layout"), [(1, 12, "auto"), (3, 12, "auto"), (3, 32, "cells"), (3, 32, "frames")]
)
def test_arrays_hold_at_any_time_what_those_of_the_original_hold(
    kind, n_envs, side, layout, codec, pair, walk, feed, same
):
    ours, theirs = pair(kind, n_envs, side, compression_method=codec, layout=layout)
    in_arrays(same, ours, theirs)  # nothing is written: zeros
    for step in walk(ours.observation_space, ours.action_space, n_envs, ROWS * 5 // 2):
        feed(step, ours, theirs)
        in_arrays(same, ours, theirs)


@pytest.mark.parametrize("kind", ["plain", "optimized", "optimized with timeouts"])
@pytest.mark.parametrize(("filled", "side"), [(0, 12), (4, 12), (4, 32), (17, 12), (17, 32)])
def test_assigning_by_hand_changes_what_was_assigned_and_nothing_else(
    kind, filled, side, codec, pair, walk, feed, same
):
    ours, theirs = pair(kind, 3, side, compression_method=codec)
    steps = list(walk(ours.observation_space, ours.action_space, 3, 40))
    for step in steps[:filled]:
        feed(step, ours, theirs)
    rng = np.random.default_rng(0)
    cases = [3, 4, 5, filled % ROWS, (filled - 1) % ROWS, 0, -1, (7, 1), [2, 3], slice(2, 6), (slice(None), 2), ...]
    names = ["observations", "next_observations"]
    for number, key in enumerate([*cases, *cases[::-1]]):
        name = names[number % 2] if hasattr(theirs, "next_observations") else "observations"
        new = rng.integers(0, 5, getattr(theirs, name)[key].shape).astype(np.uint8)
        for buffer in (ours, theirs):
            getattr(buffer, name)[key] = new
        in_arrays(same, ours, theirs)
        if number % 3 == 0:  # adding goes on as if nothing had happened
            feed(steps[filled + number // 3], ours, theirs)
            in_arrays(same, ours, theirs)


@pytest.mark.parametrize("kind", ["plain", "dict"])
def test_assigning_observations_by_hand_leaves_the_next_observations_alone(kind, codec, pair, walk, feed, same):
    ours, theirs = pair(kind, 1, compression_method=codec)
    for step in walk(ours.observation_space, ours.action_space, 1, 7):
        feed(step, ours, theirs)
    arrays = ours.observations if kind == "dict" else {"": ours.observations}
    following = ours.next_observations if kind == "dict" else {"": ours.next_observations}
    for key, array in arrays.items():
        before = np.asarray(following[key])
        new = np.ones_like(array[3]) if (array[3] == 0).any() else np.zeros_like(array[3])
        array[3] = new
        same(array[3], new)
        same(np.asarray(following[key]), before)


@EVERY_LAYOUT
@pytest.mark.parametrize("side", [12, 32])
def test_after_a_reset_nothing_of_what_was_is_left(kind, side, codec, pair, run, same):
    ours, theirs = pair(kind, 3, side, compression_method=codec)
    run(ours, theirs)
    ours.reset()
    assert (ours.pos, ours.full, ours.size(), ours.memory_report().live_nbytes) == (0, False, 0, 0)
    _, fresh = pair(kind, 3, side)
    if kind == "dict":
        same({key: np.asarray(array) for key, array in ours.observations.items()}, fresh.observations)
    else:
        same(np.asarray(ours.observations), fresh.observations)
    theirs.reset()
    run(ours, theirs, seed=1)


@pytest.mark.parametrize("kind", ["plain", "optimized", "dict", "3 steps"])
def test_a_buffer_of_one_row_is_full_after_every_step(kind, codec, screen, composite, walk, feed, same_samples):
    theirs_class, ours_class, actions, both, own = KINDS[kind]
    space = composite() if kind == "dict" else screen()
    ours = ours_class(1, space, actions, device="cpu", n_envs=2, compression_method=codec, **both, **own)
    theirs = theirs_class(1, space, actions, device="cpu", n_envs=2, **both)
    for step in walk(space, actions, 2, 5):
        feed(step, ours, theirs)
        if kind != "optimized":  # there, no transition is left that could be sampled
            same_samples(ours, theirs, 4)


def expected(steps, kind, number, env, n_steps, gamma):
    """What a sample must be if it begins at a step, from the steps alone."""
    reward = np.float32(0)
    for power in range(n_steps):
        last = number + power
        _, next_obs, _, rewards, dones, infos = steps[last]
        reward += np.float32(gamma) ** np.float32(power) * rewards[env]
        if dones[env] or last == len(steps) - 1:
            break
    if kind == "optimized" and last < len(steps) - 1:
        next_obs = steps[last + 1][0]  # one array for both: Stable-Baselines3 forgets how episodes ended
    timeout = kind != "optimized" and infos[env].get("TimeLimit.truncated", False)
    return steps[number][0], next_obs, bool(dones[env] and not timeout), float(reward)


@pytest.mark.parametrize("kind", ["plain", "optimized", "optimized with timeouts", "dict", "5 steps"])
@pytest.mark.parametrize(("noisy", "count"), [(18, 18), (75, 75), (40, 80)], ids=["at first", "later", "fits again"])
def test_a_ring_that_evicts_hands_out_whole_transitions_of_its_newest_part(
    kind, noisy, count, codec, screen, composite, walk, noise, feed, same, single
):
    _, ours, _, both, own = KINDS[kind]
    n_envs, rows, room = 3, 30, 10
    space, row_nbytes = (composite(), n_envs * (576 + 320)) if kind == "dict" else (screen(), n_envs * 576)
    place = {"heap": "ring", "heap_kwargs": {"capacity": room * row_nbytes}}
    label = spaces.Box(0, np.inf, (2,), np.float32)
    buffer = ours(rows * n_envs, space, label, "cpu", n_envs=n_envs, compression_method=codec, **place, **both, **own)
    steps = [
        *walk(space, spaces.Discrete(2), n_envs, noisy, draw=noise),
        *walk(space, spaces.Discrete(2), n_envs, count - noisy),
    ]
    for number, (obs, next_obs, _, reward, done, infos) in enumerate(steps):
        action = np.stack([np.full(n_envs, number), np.arange(n_envs)], axis=1)  # tells which transition it is
        feed((obs, next_obs, action.astype(np.float32), reward, done, infos), buffer)
    if noisy == count:
        assert buffer.memory_report().evicted > 0

    n_step = {name: both[name] for name in ("n_steps", "gamma") if name in both}
    np.random.seed(0)
    samples = buffer.sample(300)
    actions = samples.actions.numpy().astype(int)
    assert set(actions[:, 0]) == set(range(actions[:, 0].min(), count))
    most = room if noisy == count else rows - (kind == "optimized")  # there, the newest has overwritten the oldest
    assert room // 2 <= count - actions[:, 0].min() <= most
    for number, (step, env) in enumerate(actions):
        obs, next_obs, done, reward = expected(steps, kind, step, env, **{"n_steps": 1, "gamma": 0.99, **n_step})
        same(single(samples.observations, number), single(obs, env), "observation")
        same(single(samples.next_observations, number), single(next_obs, env), "next observation")
        assert samples.dones[number].item() == done
        assert samples.rewards[number].item() == pytest.approx(reward, rel=1e-5)

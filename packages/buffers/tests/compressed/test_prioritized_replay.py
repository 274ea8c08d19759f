"""Prioritized buffers draw by priority, return what was stored, and forget what is gone."""

import pickle

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples

from sb3_extra_buffers.compressed import (
    CompressedDictPrioritizedReplayBuffer,
    CompressedPrioritizedReplayBuffer,
    CompressedReplayBuffer,
    DictPrioritizedReplayBufferSamples,
    PrioritizedReplayBufferSamples,
)
from sb3_extra_buffers.errors import BufferStateError, FileContentError, ParameterError

ACTIONS = spaces.Discrete(5)
VECTOR = spaces.Box(-9, 9, (6,), np.float32)
ROWS, ENVS = 8, 3
OPTIMIZED = {"optimize_memory_usage": True, "handle_timeout_termination": False}


def make(space=VECTOR, rows=ROWS, envs=ENVS, **arguments):
    is_dict = isinstance(space, spaces.Dict)
    kind = CompressedDictPrioritizedReplayBuffer if is_dict else CompressedPrioritizedReplayBuffer
    return kind(rows * envs, space, ACTIONS, device="cpu", n_envs=envs, **arguments)


def add(buffer, *numbers):
    """Add steps whose rewards are the numbers of the transitions."""
    for number in numbers:
        rewards = number * buffer.n_envs + np.arange(buffer.n_envs)
        obs = rewards[:, None].repeat(6, axis=1).astype(np.float32) / 100
        done = np.zeros(buffer.n_envs)
        buffer.add(obs, obs + 1, np.zeros(buffer.n_envs), rewards, done, [{}] * buffer.n_envs)


def drawn(buffer, batches=1, batch_size=64):
    """The numbers of all transitions that are drawn."""
    samples = [buffer.sample(batch_size) for _ in range(batches)]
    for sample in samples:
        assert np.array_equal(sample.leaf_nodes_indices, sample.rewards[:, 0].numpy())
    return np.concatenate([sample.leaf_nodes_indices for sample in samples])


def test_fields_are_those_of_stable_baselines3_and_then_two_more():
    for ours, theirs in (
        (PrioritizedReplayBufferSamples, ReplayBufferSamples),
        (DictPrioritizedReplayBufferSamples, DictReplayBufferSamples),
    ):
        assert ours._fields == (*theirs._fields, "weights", "leaf_nodes_indices")
    buffer = make()
    add(buffer, 0, 1)
    sample = buffer.sample(5)
    assert type(sample) is PrioritizedReplayBufferSamples
    assert sample.weights.shape == (5, 1)
    assert sample.weights.dtype == th.float32
    assert sample.leaf_nodes_indices.dtype == np.int64
    assert sample.discounts is None


@pytest.mark.parametrize("steps", [5, ROWS, 2 * ROWS + 3])
@pytest.mark.parametrize("kind", ["vector", "image", "dict", "optimized", "none"])
def test_a_sample_holds_what_stable_baselines3_has_at_these_cells(
    kind, steps, walk, feed, same, screen, composite, normalizer
):
    space = {"image": screen(32), "dict": composite()}.get(kind, VECTOR)
    own = {"compression_method": "none"} if kind == "none" else {}
    both = OPTIMIZED if kind == "optimized" else {}
    ours = make(space, **own, **both)
    original = DictReplayBuffer if kind == "dict" else ReplayBuffer
    theirs = original(ROWS * ENVS, space, ACTIONS, device="cpu", n_envs=ENVS, **both)
    for step in walk(space, ACTIONS, ENVS, steps):
        feed(step, ours, theirs)
    env = normalizer(space, ACTIONS, ENVS, ["scan"] if kind == "dict" else None)
    for normalize in (None, env):
        np.random.seed(1)
        sample = ours.sample(40, env=normalize)
        rows, envs = np.divmod(sample.leaf_nodes_indices % (ROWS * ENVS), ENVS)
        for row, number, place in zip(rows, envs, range(40)):

            class Chosen:
                """Stands for numpy.random: this environment."""

                randint = staticmethod(lambda *_args, number=number, **_kwargs: np.array([number]))

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(np.random, "randint", Chosen.randint)
                expected = theirs._get_samples(np.array([row]), env=normalize)
            for name in expected._fields[:5]:
                found, wanted = getattr(sample, name), getattr(expected, name)
                if isinstance(found, dict):
                    same(
                        {key: part[place].numpy() for key, part in found.items()},
                        {k: p[0].numpy() for k, p in wanted.items()},
                    )
                else:
                    same(found[place].numpy(), wanted[0].numpy())


def test_every_environment_is_drawn():
    buffer = make()
    add(buffer, *range(3))
    assert set(drawn(buffer, 4)) == set(range(9))


def chi_square(counts, expected):
    return ((counts - expected) ** 2 / expected).sum()


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_alpha_0_is_uniform(batch_size):
    np.random.seed(5)
    buffer = make(alpha=0)
    add(buffer, *range(ROWS + 2))
    first = drawn(buffer)
    buffer.update_priorities(first, np.random.random(len(first)) * 100, 1.0)
    batches = 12_000 // batch_size
    counts = np.bincount(drawn(buffer, batches, batch_size) - 2 * ENVS, minlength=24)
    assert len(counts) == 24
    # 23 degrees of freedom: 49.7 is exceeded once in a thousand times.
    assert chi_square(counts, counts.sum() / 24) < 49.7
    assert (buffer.sample(9).weights == 1).all()


@pytest.mark.parametrize("alpha", [0.3, 0.6, 1.0])
def test_frequencies_follow_the_power_of_priorities_and_weights_follow_beta(alpha):
    np.random.seed(6)
    buffer = make(alpha=alpha, beta=0.5, min_priority=0.25)
    add(buffer, *range(ROWS))
    errors = np.arange(24) / 4
    buffer.update_priorities(np.arange(24), errors, 1.0)
    shares = (errors + 0.25) ** alpha
    shares /= shares.sum()
    np.testing.assert_allclose(buffer.priorities().reshape(-1), (errors + 0.25) ** alpha, rtol=1e-15)
    counts = np.bincount(drawn(buffer, 400, 50), minlength=24)
    assert chi_square(counts, shares * counts.sum()) < 49.7
    for progress, beta in ((1.0, 0.5), (0.5, 0.75), (0.0, 1.0), (-0.1, 1.0)):
        buffer.update_priorities([], [], progress)
        assert buffer.current_beta == beta
        sample = buffer.sample(50)
        weights = (24 * shares[sample.leaf_nodes_indices]) ** -beta
        np.testing.assert_allclose(sample.weights[:, 0].numpy(), weights / weights.max(), rtol=1e-6)


def test_the_same_seed_draws_the_same():
    buffer = make()
    add(buffer, *range(11))
    found = []
    for _ in range(2):
        np.random.seed(3)
        found.append(drawn(buffer, 3))
    assert np.array_equal(*found)


def test_new_transitions_get_the_largest_priority_seen():
    buffer = make(alpha=1, min_priority=0.5)
    add(buffer, 0)
    assert (buffer.priorities()[0] == 1).all()
    buffer.update_priorities([0, 1], [7.0, 0.0], 1.0)
    add(buffer, 1)
    assert buffer.priorities()[:2].tolist() == [[7.5, 0.5, 1], [7.5, 7.5, 7.5]]
    buffer.update_priorities([0, 3, 4, 5], [0.0, 0, 0, 0], 1.0)
    add(buffer, 2)
    assert buffer.priorities()[2].tolist() == [7.5] * 3


def test_steps_that_were_added_before_an_update_have_the_priority_of_before():
    buffer = make(alpha=1, min_priority=1)
    add(buffer, 0, 1)
    sampled = buffer.sample(4)
    add(buffer, 2)
    buffer.update_priorities(sampled.leaf_nodes_indices, [9.0] * 4, 1.0)
    assert (buffer.priorities()[2] == 1).all()


def test_the_last_td_error_of_a_transition_counts():
    buffer = make(alpha=1, min_priority=1)
    add(buffer, 0)
    buffer.update_priorities(th.tensor([1, 2, 1, 1]), th.tensor([[5.0], [4.0], [3.0], [2.0]]), 1.0)
    assert buffer.priorities()[0].tolist() == [1, 3, 5]


def test_updates_of_overwritten_transitions_are_ignored():
    buffer = make(alpha=1, min_priority=1)
    add(buffer, *range(ROWS))
    buffer.sample(4)
    add(buffer, *range(ROWS, ROWS + 2))
    # Steps 0 and 1 have been overwritten by 8 and 9, which have the same cells.
    buffer.update_priorities(np.arange(4 * ENVS), np.full(4 * ENVS, 5.0), 1.0)
    assert buffer.priorities()[:5].tolist() == [[1] * 3, [1] * 3, [6] * 3, [6] * 3, [1] * 3]
    buffer.update_priorities(np.arange(ROWS * ENVS, (ROWS + 2) * ENVS), np.full(2 * ENVS, 2.0), 1.0)
    assert buffer.priorities()[:2].tolist() == [[3] * 3, [3] * 3]


def test_wraps_between_samples_leave_the_tree_right():
    rng = np.random.default_rng(0)
    buffer, number, expected = make(alpha=1, min_priority=1), 0, np.zeros((ROWS, ENVS))
    largest = 1.0
    for _ in range(60):
        for _ in range(rng.integers(0, 2 * ROWS)):
            add(buffer, number)
            expected[number % ROWS] = largest
            number += 1
        if not number:
            continue
        numbers = drawn(buffer, 1, 8)
        errors = rng.integers(0, 9, 8).astype(np.float32)
        buffer.update_priorities(numbers, errors, 1.0)
        for at, error in zip(numbers, errors):
            expected.reshape(-1)[at % (ROWS * ENVS)] = error + 1
        largest = max(largest, errors.max() + 1)
        assert np.array_equal(buffer.priorities(), expected)
        assert buffer._priorities.tree.total == expected.sum()


def test_evicted_transitions_have_no_mass():
    image = spaces.Box(0, 255, (10, 10), np.uint8)
    storage = {"compression_method": "none", "heap": "ring", "heap_kwargs": {"capacity": 6000}, "layout": "cells"}
    buffer = CompressedPrioritizedReplayBuffer(50, image, ACTIONS, device="cpu", alpha=1, min_priority=1, **storage)
    for number in range(120):
        obs = np.full((1, 10, 10), number, np.uint8)
        buffer.add(obs, obs + 1, np.zeros(1), np.array([number]), np.zeros(1), [{}])
        if number % 7 == 0:
            sample = buffer.sample(8)
            assert np.array_equal(sample.observations[:, 0, 0].numpy(), sample.rewards[:, 0].numpy())
            buffer.update_priorities(sample.leaf_nodes_indices, np.full(8, 100.0), 1.0)
    kept = buffer._kept_rows()
    assert 5 < kept < 50
    numbers = drawn(buffer, 30)
    assert set(numbers) == set(range(120 - kept, 120))
    assert np.count_nonzero(buffer.priorities()) == kept
    before = buffer.priorities()
    buffer.update_priorities([120 - kept - 1], [1.0], 1.0)  # evicted
    assert np.array_equal(buffer.priorities(), before)


def test_the_oldest_of_overlapping_observations_has_no_mass():
    buffer = make(**OPTIMIZED)
    add(buffer, *range(ROWS - 1))
    assert set(drawn(buffer, 20)) == set(range((ROWS - 1) * ENVS))
    add(buffer, *range(ROWS - 1, ROWS + 3))
    assert set(drawn(buffer, 20)) == set(range(4 * ENVS, (ROWS + 3) * ENVS))


def test_n_step_returns_are_those_of_stable_baselines3(walk, same):
    settings = {"n_steps": 3, "gamma": 0.9}
    ours = make(envs=1, **settings)
    theirs = NStepReplayBuffer(ROWS, VECTOR, ACTIONS, device="cpu", **settings)
    for count, step in enumerate(walk(VECTOR, ACTIONS, 1, 3 * ROWS)):
        ours.add(*step)
        theirs.add(*step)
        sample = ours.sample(12)
        expected = theirs._get_samples(sample.leaf_nodes_indices % ROWS)
        assert sample.discounts is not None
        same(tuple(sample)[:6], tuple(expected), f"step {count}")


def test_n_step_returns_of_several_environments_and_keys(walk, composite, same):
    settings, space = {"n_steps": 4, "gamma": 0.8}, composite()
    ours, scan = make(space, **settings), space["scan"]
    theirs = [NStepReplayBuffer(ROWS, scan, ACTIONS, device="cpu", **settings) for _ in range(ENVS)]
    for step in walk(space, ACTIONS, ENVS, 3 * ROWS):
        ours.add(*step)
        for env, buffer in enumerate(theirs):
            obs, next_obs, *rest, infos = step
            only = [part[env : env + 1] for part in (obs["scan"], next_obs["scan"], *rest, infos)]
            buffer.add(*only)
        sample = ours.sample(10)
        rows, envs = np.divmod(sample.leaf_nodes_indices % (ROWS * ENVS), ENVS)
        for place, (row, env) in enumerate(zip(rows, envs)):
            expected = theirs[env]._get_samples(np.array([row]))
            same(sample.observations["scan"][place : place + 1].numpy(), expected.observations.numpy())
            same(sample.next_observations["scan"][place : place + 1].numpy(), expected.next_observations.numpy())
            for name in ("actions", "dones", "rewards", "discounts"):
                same(getattr(sample, name)[place : place + 1].numpy(), getattr(expected, name).numpy())


@pytest.mark.parametrize("way", ["pickle", "checkpoint", "second checkpoint"])
@pytest.mark.parametrize(
    "arguments", [{}, {"n_steps": 2, "gamma": 0.5}, OPTIMIZED], ids=["plain", "n-step", "optimized"]
)
def test_a_copy_goes_on_exactly_like_the_original(way, arguments, tmp_path, same, no_waiting):
    buffer = make(alpha=0.7, beta=0.1, final_beta=0.9, min_priority=0.1, **arguments)
    add(buffer, *range(ROWS + 2))
    numbers = buffer.sample(20).leaf_nodes_indices
    if way == "second checkpoint":
        buffer.save(tmp_path)
    buffer.update_priorities(numbers, np.random.default_rng(0).random(20) * 9, 0.3)
    add(buffer, ROWS + 2)  # not in the tree yet
    if way == "pickle":
        twin = pickle.loads(pickle.dumps(buffer))
    else:
        buffer.save(tmp_path)
        twin = type(buffer).load(tmp_path, device="cpu")
    found = []
    for one in (buffer, twin):
        np.random.seed(0)
        one.update_priorities(numbers, np.arange(20.0), 0.2)
        add(one, ROWS + 3)
        found.append((one.sample(30), one.priorities(), one.current_beta, one._priorities.tree.nodes))
    same(*found)


def test_a_damaged_checkpoint_is_refused(tmp_path, no_waiting):
    buffer = make()
    add(buffer, 0, 1)
    buffer._priorities.tree.fill(0, ROWS * ENVS, 1.0)  # also where nothing was stored
    buffer._priorities.filled = 2
    buffer.save(tmp_path)
    with pytest.raises(FileContentError, match="cannot be sampled has a priority"):
        type(buffer).load(tmp_path)


def test_reset_forgets_priorities_and_earlier_numbers():
    buffer = make(alpha=1, min_priority=1)
    add(buffer, *range(ROWS + 3))
    old = drawn(buffer)
    buffer.update_priorities(old, np.full(len(old), 50.0), 0.0)
    buffer.reset()
    with pytest.raises(BufferStateError, match="empty"):
        buffer.sample(1)
    assert not buffer.priorities().any()
    assert buffer.current_beta == 0.4
    buffer.update_priorities(old, np.full(len(old), 9.0), 1.0)
    add(buffer, 0)
    sample = buffer.sample(9)
    assert set(sample.leaf_nodes_indices % (ROWS * ENVS)) == {0, 1, 2}
    buffer.update_priorities(sample.leaf_nodes_indices, np.full(9, 3.0), 1.0)
    assert buffer.priorities()[0].tolist() == [4] * 3


def test_the_report_has_16_bytes_per_transition_for_priorities():
    plain = CompressedReplayBuffer(4000, VECTOR, ACTIONS, device="cpu").memory_report().overhead
    assert 16 * 4000 <= make(rows=4000, envs=1).memory_report().overhead - plain < 16 * 4000 + 200


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        *(
            ({name: value}, name)
            for name in ("alpha", "beta", "final_beta")
            for value in (-0.1, 1.1, np.nan, "1", True)
        ),
        *(({"min_priority": value}, "min_priority") for value in (0, -1, np.nan, np.inf, None)),
        *(({"n_steps": value}, "n_steps") for value in (0, 1.5, True)),
        *(({"gamma": value}, "gamma") for value in (-1, 1.1, np.nan, "0.9")),
        ({"prefetch": True}, "prefetch"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, named):
    with pytest.raises(ParameterError, match=f"CompressedPrioritizedReplayBuffer: {named}="):
        make(**arguments)


def test_an_unknown_argument_is_refused():
    with pytest.raises(TypeError, match="Did you mean 'alpha'"):
        make(alfa=0.5)


BAD_UPDATES = {
    "negative": ([0, 1], [1.0, -1.0], 1.0, r"td_errors.*absolute.*numpy\.abs"),
    "nan": ([0, 1], [1.0, np.nan], 1.0, "td_errors.*diverged"),
    "infinite": ([0, 1], [1.0, np.inf], 1.0, "td_errors.*finite"),
    "minus infinite": ([0, 1], [1.0, -np.inf], 1.0, "td_errors"),
    "too large": ([0, 1], [1.0, 1e308], 1.0, "td_errors.*at most"),
    "index below": ([0, -1], [1.0, 1.0], 1.0, "leaf_nodes_indices.*there are 6 transitions"),
    "index behind": ([0, 6], [1.0, 1.0], 1.0, "leaf_nodes_indices"),
    "index far": ([1 << 62], [1.0], 1.0, "leaf_nodes_indices"),
    "index of another type": ([0.0, 1.0], [1.0, 1.0], 1.0, "td_errors"),
    "fewer": ([0, 1], [1.0], 1.0, "td_errors"),
    "words": ([0], ["x"], 1.0, "td_errors"),
    "progress nan": ([0], [1.0], np.nan, "progress_remaining"),
    "progress none": ([0], [1.0], None, "progress_remaining"),
}


@pytest.mark.parametrize("case", BAD_UPDATES)
def test_bad_updates_are_refused_and_change_nothing(case):
    numbers, errors, progress, message = BAD_UPDATES[case]
    buffer = make(alpha=1)
    add(buffer, 0, 1)
    before = buffer.priorities()
    with pytest.raises(ParameterError, match=message):
        buffer.update_priorities(numbers, errors, progress)
    assert np.array_equal(buffer.priorities(), before)
    assert buffer.current_beta == 0.4
    add(buffer, 2)
    assert (buffer.priorities()[2] == 1).all()


def test_there_is_nothing_to_draw_without_mass():
    buffer = make()
    with pytest.raises(BufferStateError, match="empty"):
        buffer.sample(4)
    with pytest.raises(ParameterError, match="there are 0 transitions"):
        buffer.update_priorities([0], [1.0], 1.0)
    add(buffer, 0)
    for batch_size in (0, -1, 1.5):
        with pytest.raises(ParameterError, match="batch_size"):
            buffer.sample(batch_size)
    buffer._is_torn = True  # the only step was partly overwritten
    with pytest.raises(BufferStateError, match="no step is left"):
        buffer.sample(4)


def test_dict_spaces_need_the_buffer_for_dict_spaces(composite):
    with pytest.raises(ParameterError, match="Use CompressedDictPrioritizedReplayBuffer"):
        CompressedPrioritizedReplayBuffer(8, composite(), ACTIONS)
    with pytest.raises(ParameterError, match="Use CompressedPrioritizedReplayBuffer"):
        CompressedDictPrioritizedReplayBuffer(8, VECTOR, ACTIONS)

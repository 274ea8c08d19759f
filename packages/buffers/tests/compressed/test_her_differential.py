"""Hindsight experience replay beside that of Stable-Baselines3: the same goals, the same rewards, bit for bit."""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from sb3_extra_buffers.compressed import CompressedHerReplayBuffer

ROWS = 12
ACTIONS = spaces.Box(-2, 2, (2,), np.float32)
STRATEGIES = ["future", "final", "episode"]


@pytest.fixture
def goals(screen):
    def goals(size, side=12):
        goal = spaces.Box(-10, 10, (size,), np.float32)
        return spaces.Dict({"observation": screen(side), "achieved_goal": goal, "desired_goal": goal})

    return goals


@pytest.fixture
def pair(idle, goals):
    # Goals of 280 bytes are compressed and shared between steps, goals of 12 bytes are neither.
    def pair(n_envs, strategy="future", copy_info_dict=False, size=70, side=12, **storage):
        space = goals(size, side)
        both = {
            "env": idle(space, ACTIONS, n_envs),
            "device": "cpu",
            "n_envs": n_envs,
            "goal_selection_strategy": strategy,
            "copy_info_dict": copy_info_dict,
            "n_sampled_goal": 3,
        }
        return (
            CompressedHerReplayBuffer(ROWS * n_envs, space, ACTIONS, **both, **storage),
            HerReplayBuffer(ROWS * n_envs, space, ACTIONS, **both),
        )

    return pair


@pytest.fixture
def run(walk, feed, same_samples):
    """Two and a half times through the buffers, with samples all along."""

    def run(ours, theirs, env=None, seed=0):
        for number, step in enumerate(walk(ours.observation_space, ACTIONS, ours.n_envs, ROWS * 5 // 2, seed)):
            feed(step, ours, theirs)
            if number % 7 == 1 and (theirs.ep_length > 0).any():
                same_samples(ours, theirs, batch_size=(1, 13, 64)[number % 3], seed=number, env=env)
        same_samples(ours, theirs, batch_size=64, env=env)

    return run


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("copy_info_dict", [False, True])
@pytest.mark.parametrize(("n_envs", "side"), [(1, 12), (3, 32), (8, 12)])
def test_relabelled_samples_are_those_of_the_original(strategy, copy_info_dict, n_envs, side, codec, pair, run):
    ours, theirs = pair(n_envs, strategy, copy_info_dict, side=side, compression_method=codec)
    assert isinstance(ours, HerReplayBuffer)
    run(ours, theirs)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_small_goals_are_those_of_the_original(strategy, codec, pair, run):
    run(*pair(3, strategy, size=3, compression_method=codec))


def test_samples_that_are_normalized_are_those_of_the_original(codec, pair, run, normalizer):
    ours, theirs = pair(3, compression_method=codec)
    keys = ["observation", "achieved_goal", "desired_goal"]
    run(ours, theirs, env=normalizer(ours.observation_space, ACTIONS, 3, keys))


@pytest.mark.parametrize("heap", ["ring", "mmap"])
def test_a_heap_with_room_enough_changes_nothing(heap, codec, pair, run, tmp_path):
    place = {"capacity": 1 << 22} if heap == "ring" else {"folder": str(tmp_path)}
    ours, theirs = pair(3, compression_method=codec, heap=heap, heap_kwargs=place)
    run(ours, theirs)
    assert ours.memory_report().evicted == 0


@pytest.mark.parametrize("side", [12, 32])
def test_arrays_hold_at_any_time_what_those_of_the_original_hold(side, codec, pair, walk, feed, same):
    ours, theirs = pair(3, side=side, compression_method=codec)
    for step in walk(ours.observation_space, ACTIONS, 3, ROWS + 5):
        feed(step, ours, theirs)
        for name in ("observations", "next_observations"):
            found = {key: np.asarray(array) for key, array in getattr(ours, name).items()}
            same(found, getattr(theirs, name), name)
        for name in ("ep_start", "ep_length", "dones", "timeouts"):
            same(getattr(ours, name), getattr(theirs, name), name)


def test_before_the_first_episode_ends_there_is_nothing_to_sample(pair, walk, feed):
    ours, theirs = pair(3)
    for step in walk(ours.observation_space, ACTIONS, 3, ROWS * 2, ends=lambda number: 0):
        feed(step, ours, theirs)
    for buffer in (ours, theirs):
        with pytest.raises(RuntimeError, match="Unable to sample before the end of the first episode"):
            buffer.sample(4)


def test_a_trajectory_that_is_cut_off_is_sampled_as_in_the_original(codec, pair, walk, feed, same_samples):
    ours, theirs = pair(3, compression_method=codec)
    for step in walk(ours.observation_space, ACTIONS, 3, ROWS // 2, ends=lambda number: 0):
        feed(step, ours, theirs)
    for buffer in (ours, theirs):
        with pytest.warns(UserWarning, match="will be truncated"):
            buffer.truncate_last_trajectory()
    same_samples(ours, theirs, 64)


def test_after_a_reset_nothing_of_what_was_is_left(codec, pair, run):
    used, fresh = pair(3, compression_method=codec)
    run(used, pair(3)[1], seed=1)
    used.reset()
    assert used.size() == 0
    with pytest.raises(Exception, match="empty"):
        used.sample(4)
    run(used, fresh)


def episode(steps, number, env):
    """The steps of the episode that a step belongs to."""
    first, last = number, number
    while first and not steps[first - 1][4][env]:
        first -= 1
    while not steps[last][4][env]:
        last += 1
    return range(first, last + 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("count", [18, 70])
def test_a_ring_that_evicts_relabels_within_episodes_that_are_whole(
    strategy, count, codec, goals, idle, walk, noise, feed, same, single
):
    space, label, n_envs, rows, room = goals(3), spaces.Box(0, np.inf, (2,), np.float32), 3, 20, 10
    env = idle(space, label, n_envs)
    buffer = CompressedHerReplayBuffer(
        rows * n_envs,
        space,
        label,
        env,
        "cpu",
        n_envs=n_envs,
        goal_selection_strategy=strategy,
        compression_method=codec,
        heap="ring",
        heap_kwargs={"capacity": room * n_envs * 576},
    )

    def distinct(space, rng, count):
        # Images that do not compress, so that the ring evicts, and goals that cannot be mistaken for others.
        image = noise(space["observation"], rng, count)
        achieved, desired = rng.normal(size=(2, count, 3)).astype(np.float32)
        return {"observation": image, "achieved_goal": achieved, "desired_goal": desired}

    steps = list(walk(space, ACTIONS, n_envs, count, draw=distinct, ends=lambda number: 0.4))
    for number, (obs, next_obs, _, reward, done, infos) in enumerate(steps):
        action = np.stack([np.full(n_envs, number), np.arange(n_envs)], axis=1)  # tells which transition it is
        feed((obs, next_obs, action.astype(np.float32), reward, done, infos), buffer)
    assert buffer.memory_report().evicted > 0

    np.random.seed(0)
    samples = buffer.sample(200)
    relabelled = 0
    for place, (number, env_number) in enumerate(samples.actions.numpy().astype(int)):
        whole = episode(steps, number, env_number)
        assert whole.start >= count - room
        found, following = single(samples.observations, place), single(samples.next_observations, place)
        obs, next_obs = (single(part, env_number) for part in steps[number][:2])
        for key in ("observation", "achieved_goal"):
            same(found[key], obs[key], key)
            same(following[key], next_obs[key], key)
        goal = found["desired_goal"]
        if place < 40:  # the real ones come first
            same((goal, following["desired_goal"]), (obs["desired_goal"], next_obs["desired_goal"]))
            same(samples.rewards[place].numpy(), steps[number][3][[env_number]])
            continue
        same(following["desired_goal"], goal)
        allowed = {"future": range(number, whole.stop), "final": whole[-1:], "episode": whole}[strategy]
        assert goal.tobytes() in {steps[step][1]["achieved_goal"][env_number].tobytes() for step in allowed}
        reward = env.envs[0].compute_reward(next_obs["achieved_goal"][None], goal[None], [{}])
        assert samples.rewards[place].item() == np.float32(reward[0])
        relabelled += goal.tobytes() != obs["desired_goal"].tobytes()
    assert relabelled > 50

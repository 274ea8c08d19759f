"""Every form of an argument that Stable-Baselines3's buffers take: the same content, and an error changes nothing."""

import copy
from collections import deque

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import (
    BaseBuffer,
    DictReplayBuffer,
    DictRolloutBuffer,
    NStepReplayBuffer,
    ReplayBuffer,
    RolloutBuffer,
)
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedHerReplayBuffer,
    CompressedNStepReplayBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
)
from sb3_extra_buffers.errors import ObservationError

ROWS = 4
IMAGE, GOAL, COUNTER = spaces.Box(0, 255, (4, 6), np.uint8), spaces.Box(-9, 9, (3,), np.float32), spaces.Discrete(7)
SPACES = {
    "box": IMAGE,
    "discrete": COUNTER,
    "multi": spaces.MultiDiscrete([3, 5]),
    "dict": spaces.Dict(image=IMAGE, goal=GOAL, counter=COUNTER),
    "goals": spaces.Dict(observation=IMAGE, achieved_goal=GOAL, desired_goal=GOAL),
}
OPTIMIZED = {"optimize_memory_usage": True, "handle_timeout_termination": False}
#: Their class, ours, the observation space, arguments of both.
KINDS = {
    "replay": (ReplayBuffer, CompressedReplayBuffer, "box", {}),
    "replay of a Discrete space": (ReplayBuffer, CompressedReplayBuffer, "discrete", {}),
    "replay of a MultiDiscrete space": (ReplayBuffer, CompressedReplayBuffer, "multi", {}),
    "without timeouts": (ReplayBuffer, CompressedReplayBuffer, "box", {"handle_timeout_termination": False}),
    "optimized": (ReplayBuffer, CompressedReplayBuffer, "box", OPTIMIZED),
    "dict": (DictReplayBuffer, CompressedDictReplayBuffer, "dict", {}),
    "n-step": (NStepReplayBuffer, CompressedNStepReplayBuffer, "box", {"n_steps": 2}),
    "her": (HerReplayBuffer, CompressedHerReplayBuffer, "goals", {"env": None, "copy_info_dict": True}),
    "rollout": (RolloutBuffer, CompressedRolloutBuffer, "box", {}),
    "rollout of a Discrete space": (RolloutBuffer, CompressedRolloutBuffer, "discrete", {}),
    "dict rollout": (DictRolloutBuffer, CompressedDictRolloutBuffer, "dict", {}),
}
REPLAY = [kind for kind in KINDS if "rollout" not in kind]
ROLLOUT = [kind for kind in KINDS if "rollout" in kind]
ACTIONS = {
    "discrete": spaces.Discrete(5),
    "box": spaces.Box(-2, 2, (3,), np.float64),
    "binary": spaces.MultiBinary(2),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
EVERY_COUNT = pytest.mark.parametrize("n_envs", [1, 3])

#: Other forms of an array of numbers, one for each environment.
NUMBERS = {
    "a list": lambda a: a.tolist(),
    "a tuple": lambda a: tuple(a.tolist()),
    "float64": lambda a: a.astype(np.float64),
    "float16": lambda a: a.astype(np.float16),
    "integers": lambda a: a.astype(np.int64),
    "bools": lambda a: a.astype(bool),
    "a tensor": th.as_tensor,
    "an array that is not contiguous": lambda a: np.repeat(a, 2)[::2],
    "one for all": lambda a: a[0],
    "one for all, as a plain number": lambda a: a[0].item(),
    "an axis more": lambda a: a[np.newaxis],
    "a column": lambda a: a[:, np.newaxis],
}
OBSERVATIONS = {
    "a list": lambda a: a.tolist(),
    "int64": lambda a: a.astype(np.int64),
    "float64": lambda a: a.astype(np.float64),
    "a tensor": th.as_tensor,
    "Fortran order": np.asfortranarray,
    "read only": lambda a: a.view() if a.setflags(write=False) is None else a,
    "an axis more": lambda a: a[np.newaxis],
}
CHOICES = {
    "a tensor": th.as_tensor,
    "flat": lambda a: a.reshape(-1),
    "an axis more": lambda a: a[np.newaxis],
    "int32": lambda a: a.astype(np.int32),
    "float32": lambda a: a.astype(np.float32),
    "float64": lambda a: a.astype(np.float64),
}
INFOS = {
    "a tuple": tuple,
    "a deque": deque,
    "an array": lambda infos: np.array([*infos, None], object)[:-1],
    "an iterator": iter,
    "no keys": lambda infos: [{} for _ in infos],
    "a number": lambda infos: [{"TimeLimit.truncated": 1} for _ in infos],
    "a bool of numpy": lambda infos: [{"TimeLimit.truncated": np.bool_(number % 2)} for number, _ in enumerate(infos)],
    "an array of one": lambda infos: [{"TimeLimit.truncated": np.array([1.0])} for _ in infos],
    "an array without axes": lambda infos: [{"TimeLimit.truncated": np.array(True)} for _ in infos],
    "a tensor": lambda infos: [{"TimeLimit.truncated": th.tensor(True)} for _ in infos],
}
FORMS = {
    "obs": OBSERVATIONS,
    "next_obs": OBSERVATIONS,
    "action": CHOICES,
    "reward": NUMBERS,
    "done": NUMBERS,
    "infos": INFOS,
    "episode_start": NUMBERS,
    "value": {"a column": lambda v: v[:, None], "float64": lambda v: v.double(), "one for all": lambda v: v[:1]},
    "log_prob": {"float64": lambda v: v.double(), "one for all": lambda v: v[0], "an axis more": lambda v: v[None]},
}


def pair(kind, n_envs, actions="discrete", **more):
    theirs, ours, space, both = KINDS[kind]
    size = ROWS if kind in ROLLOUT else ROWS * n_envs
    both = {"device": "cpu", "n_envs": n_envs, **both, **more}
    arguments = size, SPACES[space], ACTIONS[actions]
    return ours(*arguments, **both), theirs(*arguments, **both)


def arguments_of(buffer, seed, draw):
    """The arguments of ``add``, by name."""
    rng, n_envs = np.random.default_rng(seed), buffer.n_envs
    found = {"obs": draw(buffer.observation_space, rng, n_envs)}
    if isinstance(buffer, ReplayBuffer):
        found["next_obs"] = draw(buffer.observation_space, rng, n_envs)
    found["action"] = draw(buffer.action_space, rng, n_envs)
    found["reward"] = rng.integers(0, 2, n_envs).astype(np.float32)
    if isinstance(buffer, ReplayBuffer):
        found["done"] = rng.integers(0, 2, n_envs).astype(np.float32)
        return {**found, "infos": [{"TimeLimit.truncated": bool(number % 2)} for number in range(n_envs)]}
    found["episode_start"] = rng.integers(0, 2, n_envs).astype(np.float32)
    estimates = th.as_tensor(rng.random((2, n_envs), np.float32))
    return {**found, "value": estimates[0], "log_prob": estimates[1]}


def content(buffer):
    """All arrays of a buffer, its position, and what it keeps of the infos."""
    found = {"pos": buffer.pos, "full": buffer.full, "size": buffer.size()}
    for name, value in vars(buffer).items():
        if name in ("observations", "next_observations"):
            parts = value if isinstance(value, dict) else {"": value}
            found.update({f"{name} {key}": np.asarray(part) for key, part in parts.items()})
        elif isinstance(value, np.ndarray):
            found[name] = value.tolist() if value.dtype == object else value.copy()
    return {name: found[name] for name in sorted(found)}


def plain(value, change):
    """What a form means that only our buffers take: an array of the usual shape."""
    if isinstance(value, dict):
        return {key: plain(part, change) for key, part in value.items()}
    if isinstance(value, list):
        return [{"TimeLimit.truncated": bool(info.get("TimeLimit.truncated"))} for info in change(value)]
    if isinstance(value, th.Tensor):
        return change(value).reshape(value.shape)
    return np.resize(np.asarray(change(value)), value.shape)


def outcome(buffer, given):
    """Add a step; the content afterwards, or the error."""
    try:
        buffer.add(**given)
    except Exception as error:  # Stable-Baselines3 raises whatever numpy does
        return error
    return content(buffer)


@EVERY_KIND
@EVERY_COUNT
@pytest.mark.parametrize("actions", ACTIONS)
def test_a_form_that_the_original_takes_is_stored_as_there_and_any_other_changes_nothing(
    kind, n_envs, actions, draw, same
):
    for argument, forms in FORMS.items():
        for name, change in forms.items():
            ours, theirs = pair(kind, n_envs, actions)
            # Stable-Baselines3 keeps an iterator instead of what it iterates over.
            if argument not in arguments_of(ours, 0, draw) or (kind, name) == ("her", "an iterator"):
                continue
            for seed in range(ROWS + 1 if kind in REPLAY else 1):
                for buffer in (ours, theirs):
                    buffer.add(**arguments_of(ours, seed, draw))
            before, found = content(ours), []
            for buffer in (ours, theirs):
                given = arguments_of(ours, 50, draw)
                value = given[argument]
                is_dict = isinstance(value, dict)
                given[argument] = {key: change(part) for key, part in value.items()} if is_dict else change(value)
                found.append(outcome(buffer, given))
            where = f"{argument} as {name}"
            if isinstance(found[0], Exception):
                assert isinstance(found[0], ObservationError), where
                same(content(ours), before, where)
                continue
            if isinstance(found[1], Exception):  # here it is taken in the only sense that it has
                _, theirs = pair(kind, n_envs, actions)
                for seed in range(ROWS + 1 if kind in REPLAY else 1):
                    theirs.add(**arguments_of(ours, seed, draw))
                given = arguments_of(ours, 50, draw)
                given[argument] = plain(given[argument], change)
                theirs.add(**given)
                found[1] = content(theirs)
                for one in found if argument == "infos" else ():
                    one.pop("infos", None)  # they are kept as they came
            same(*found, where)


@EVERY_COUNT
@pytest.mark.parametrize("kind", ["replay", "replay of a Discrete space", "optimized", "n-step", "without timeouts"])
def test_extend_adds_what_the_original_adds(kind, n_envs, draw, same, same_samples):
    ours, theirs = pair(kind, n_envs)
    steps = [arguments_of(ours, seed, draw) for seed in range(ROWS + 2)]
    columns = [np.stack([step[name] for step in steps]) for name in ("obs", "next_obs", "action", "reward", "done")]
    truncated = np.array([1.0]) if n_envs == 1 else True
    infos = [[{"TimeLimit.truncated": truncated} for _ in range(n_envs)], *(step["infos"] for step in steps[1:])]
    for buffer in (ours, theirs):
        buffer.extend(*columns, copy.deepcopy(infos))
    same(content(ours), content(theirs))
    same_samples(ours, theirs, 16)


@EVERY_COUNT
@pytest.mark.parametrize("kind", ["rollout", "rollout of a Discrete space"])
def test_extend_adds_to_a_rollout_what_the_original_adds(kind, n_envs, draw, same):
    ours, theirs = pair(kind, n_envs)
    steps = [arguments_of(ours, seed, draw) for seed in range(ROWS)]
    columns = [np.stack([step[name] for step in steps]) for name in ("obs", "action", "reward", "episode_start")]
    estimates = [th.stack([step[name] for step in steps]) for name in ("value", "log_prob")]
    for buffer in (ours, theirs):
        buffer.extend(*columns, *estimates)
    same(content(ours), content(theirs))
    for batch_size in (None, 3):
        batches = []
        for buffer in (ours, theirs):
            np.random.seed(4)
            batches.append([*buffer.get(batch_size)])
        same(*batches)


def test_a_step_of_extend_that_is_refused_leaves_a_full_buffer_as_it_was(draw, same):
    ours, _ = pair("replay", 1)
    steps = [arguments_of(ours, seed, draw) for seed in range(ROWS + 1)]
    for step in steps:
        ours.add(**step)
    before = content(ours)
    columns = [[value] for name, value in steps[0].items() if name != "infos"]
    for wrong in ("yes", np.zeros(2), None, float("nan")):
        with pytest.raises(ObservationError, match=r"TimeLimit\.truncated"):
            ours.extend(*columns, [[{"TimeLimit.truncated": wrong}]])
        same(content(ours), before)


@pytest.mark.parametrize("timeouts", [True, False])
@pytest.mark.parametrize("wrong", [[], [{}], [{}] * 4, None, 3, {"TimeLimit.truncated": True}])
def test_hindsight_refuses_infos_of_the_wrong_length_and_no_episode_is_lost(timeouts, wrong, draw, same):
    ours, _ = pair("her", 3, handle_timeout_termination=timeouts)
    for seed in range(ROWS + 1):
        ours.add(**{**arguments_of(ours, seed, draw), "done": np.ones(3)})
    before = content(ours)
    assert ours.ep_length[ours.pos].all()
    expected = "infos is .*, expected a dictionary for each of 3 environments"
    with pytest.raises(ObservationError, match=expected):
        ours.add(**{**arguments_of(ours, 50, draw), "infos": wrong})
    same(content(ours), before)
    ours.add(**arguments_of(ours, 50, draw))


@pytest.mark.filterwarnings("error")
@EVERY_KIND
def test_a_warning_that_is_an_error_comes_before_anything_is_stored(kind, draw, same):
    ours, _ = pair(kind, 3)
    for seed in range(ROWS + 1 if kind in REPLAY else 1):
        ours.add(**arguments_of(ours, seed, draw))
    before = content(ours)
    with pytest.raises(RuntimeWarning, match="overflow"):
        ours.add(**{**arguments_of(ours, 50, draw), "reward": np.full(3, 1e300)})
    same(content(ours), before)


@EVERY_KIND
@EVERY_COUNT
def test_size_and_reset_are_those_of_the_original(kind, n_envs, draw, same):
    ours, theirs = pair(kind, n_envs)
    for _ in range(2):
        for seed in range(ROWS if kind in ROLLOUT else ROWS + 2):
            assert ours.size() == theirs.size()
            for buffer in (ours, theirs):
                buffer.add(**arguments_of(ours, seed, draw))
        same(content(ours), content(theirs))
        for buffer in (ours, theirs):
            buffer.reset()
        assert (ours.pos, ours.full, ours.size()) == (theirs.pos, theirs.full, theirs.size())
        if kind == "her":
            _, theirs = pair(kind, n_envs)  # reset() leaves the episodes there, which then are wrong


@EVERY_KIND
@pytest.mark.parametrize("copied", [True, False])
@pytest.mark.parametrize("array", [np.arange(6, dtype=np.float64), np.ones((2, 3), bool), np.array(7), [1, 2], 3.5])
def test_tensors_of_an_array_are_those_of_the_original(kind, copied, array, same):
    ours, theirs = pair(kind, 1)
    found, expected = (buffer.to_torch(copy.copy(array), copied) for buffer in (ours, theirs))
    same(found, expected)
    if isinstance(array, np.ndarray):
        shares = [np.shares_memory(buffer.to_torch(array, copied).numpy(), array) for buffer in (ours, theirs)]
        assert shares == [not copied, not copied]


@EVERY_COUNT
@pytest.mark.parametrize("kind", ["replay", "dict", "rollout", "dict rollout"])
def test_arrays_are_swapped_and_flattened_as_in_the_original(kind, n_envs, draw, same):
    ours, theirs = pair(kind, n_envs)
    for seed in range(ROWS):
        for buffer in (ours, theirs):
            buffer.add(**arguments_of(ours, seed, draw))
    parts = [buffer.observations for buffer in (ours, theirs)]
    for key in parts[1] if isinstance(parts[1], dict) else [None]:
        own, other = parts if key is None else (part[key] for part in parts)
        same(np.asarray(ours.swap_and_flatten(own)), theirs.swap_and_flatten(other))
    same(ours.swap_and_flatten(ours.rewards), theirs.swap_and_flatten(theirs.rewards))
    assert type(ours).swap_and_flatten is BaseBuffer.swap_and_flatten


@pytest.mark.parametrize("kind", ["replay", "dict", "n-step"])
def test_a_batch_is_normalized_by_the_methods_of_the_original(kind, draw, same, normalizer):
    ours, theirs = pair(kind, 3)
    keys = ["goal"] if kind == "dict" else None
    env = normalizer(ours.observation_space, ours.action_space, 3, keys)
    obs, reward = draw(ours.observation_space, np.random.default_rng(0), 5), np.arange(5, dtype=np.float32)
    for given in (None, env):
        same(ours._normalize_obs(obs, given), theirs._normalize_obs(obs, given))
        same(ours._normalize_reward(reward, given), theirs._normalize_reward(reward, given))

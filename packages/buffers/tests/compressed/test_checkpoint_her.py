"""Hindsight buffers that were saved and loaded relabel the same goals, with and without infos."""

import json
from collections import OrderedDict
from enum import IntEnum
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedHerReplayBuffer
from sb3_extra_buffers.compressed.json import from_json, to_json
from sb3_extra_buffers.errors import FileContentError, ParameterError

pytestmark = pytest.mark.usefixtures("no_waiting")
ROWS, N_ENVS = 20, 2
ACTIONS = spaces.Box(-2, 2, (2,), np.float32)


@pytest.fixture
def make(screen, idle):
    goal = spaces.Box(-10, 10, (70,), np.float32)
    space = spaces.Dict({"observation": screen(32), "achieved_goal": goal, "desired_goal": goal})

    def make(**options):
        env = idle(space, ACTIONS, N_ENVS)
        return CompressedHerReplayBuffer(ROWS * N_ENVS, space, ACTIONS, env, "cpu", N_ENVS, **options), env

    return make


@pytest.mark.parametrize("copy_info_dict", [False, True])
@pytest.mark.parametrize("strategy", ["future", "final", "episode"])
def test_goals_and_rewards_are_those_of_the_buffer_that_was_saved(
    copy_info_dict, strategy, tmp_path, make, walk, feed, same_samples
):
    options = {"copy_info_dict": copy_info_dict, "goal_selection_strategy": strategy, "n_sampled_goal": 3}
    (ours, env), (twin, _) = make(**options), make(**options)
    path = tmp_path / "checkpoint"
    for number, step in enumerate(walk(ours.observation_space, ACTIONS, N_ENVS, 55)):
        feed(step, ours, twin)
        if number % 9 == 2:
            twin.save(path)
            twin = CompressedHerReplayBuffer.load(path, "cpu", env=env)
        if number % 7 == 6:
            same_samples(twin, ours, 30, seed=number)
    same_samples(twin, ours, 30)
    assert (twin.her_ratio, twin.goal_selection_strategy) == (ours.her_ratio, ours.goal_selection_strategy)


def test_without_an_environment_it_is_set_later_as_after_a_pickle(tmp_path, make, walk, feed, same_samples):
    buffer, env = make()
    for step in walk(buffer.observation_space, ACTIONS, N_ENVS, 30):
        feed(step, buffer)
    buffer.save(tmp_path / "checkpoint")
    loaded = CompressedHerReplayBuffer.load(tmp_path / "checkpoint", "cpu")
    loaded.set_env(env)
    same_samples(loaded, buffer, 30)


def test_episodes_that_do_not_contain_their_transitions_are_refused(tmp_path, make, walk, feed):
    buffer, _ = make()
    for step in walk(buffer.observation_space, ACTIONS, N_ENVS, 30):
        feed(step, buffer)
    assert buffer.ep_length.any()
    buffer.ep_length[buffer.ep_length > 0] = 1
    buffer.save(tmp_path / "checkpoint")
    with pytest.raises(FileContentError, match="a transition lies outside of its episode"):
        CompressedHerReplayBuffer.load(tmp_path / "checkpoint", "cpu")


@pytest.fixture
def with_infos(make, walk):
    """A buffer with one row of infos, the environment, and what adds another one."""

    def with_infos(*infos):
        buffer, env = make(copy_info_dict=True)
        steps = walk(buffer.observation_space, ACTIONS, N_ENVS, 9)

        def add(*infos):
            obs, next_obs, action, reward, done, _ = next(steps)
            buffer.add(obs, next_obs, action, reward, done, list(infos))

        add(*infos)
        return buffer, env, add

    return with_infos


EXACT = {
    "numbers": {"i": 7, "f": 0.1, "inf": float("inf"), "large": 10**600, "b": True, "n": None},
    "numbers of numpy": {"f": np.float32(0.1), "d": np.float64(0.1), "i": np.int8(3), "b": np.bool_(True)},
    "text": {"s": "x\n\ud800", "": ""},
    "lists and tuples": {"l": [1, [2.5, (3,)], []], "t": (1, ["x"], ())},
    "arrays": {
        "a": np.arange(3.5),
        "none": np.zeros((2, 0), ">f4"),
        "one": np.array(3, np.uint8),
        "nan": np.full(3, np.nan),
    },
    "dictionaries": {"d": {"e": {}}, "o": OrderedDict(b=np.arange(2), a=1)},
    "keys": {1: 2, (1, "a"): 3, np.int64(5): 4, None: 5, 0.5: 6},
}


@pytest.mark.parametrize("kind", EXACT)
def test_infos_come_back_with_the_same_types_dtypes_and_bits(kind, tmp_path, with_infos, same):
    buffer, env, _ = with_infos(EXACT[kind], {})
    buffer.save(tmp_path / "checkpoint")
    found = CompressedHerReplayBuffer.load(tmp_path / "checkpoint", "cpu", env=env).infos[0]
    same(found.tolist(), [EXACT[kind], {}])
    assert [type(key) for key in found[0]] == [type(key) for key in EXACT[kind]]


class Level(IntEnum):
    LOW = 1


ITSELF: list = []
ITSELF.append(ITSELF)
REFUSED = [
    object(),
    np.array(["a", "b"]),
    np.array([None, 1], object),
    np.array([1j]),
    1j,
    b"bytes",
    {1, 2},
    dict,
    Level.LOW,
    np.str_("a"),
    np.datetime64("2020-01-01"),
    np.ma.masked_array([1, 2], [True, False]),
    10**5000,
    Path("a"),
    {frozenset(): 1},
    ITSELF,
]


@pytest.mark.parametrize("value", REFUSED, ids=lambda value: type(value).__name__)
def test_infos_that_would_come_back_as_something_else_are_refused_and_the_checkpoint_stays(value, tmp_path, with_infos):
    buffer, _, add = with_infos({"a": 1}, {})
    buffer.save(tmp_path / "checkpoint")
    add({}, {"deep": [{"value": value}]})
    with pytest.raises(ParameterError, match=r"(?s)infos=.* save_replay_buffer of the model"):
        buffer.save(tmp_path / "checkpoint")
    assert CompressedHerReplayBuffer.load(tmp_path / "checkpoint", "cpu", verify=True).pos == 1


def test_infos_of_earlier_checkpoints_are_read_as_before():
    said = {
        "mapping": [["b", {"tuple": [1, "x", None]}], [3, {"array": {"shape": [2], "dtype": "|u1", "bytes": "Bw=="}}]]
    }
    found = from_json(said)
    assert found["b"] == (1, "x", None)
    assert found[3].tolist() == [7, 7]


ARGUMENTS = [np.array(["a"]), np.array([None]), np.datetime64("2020-01-01"), {(1, 2): 3}, dict, [{"a": {1}}]]


@pytest.mark.parametrize("value", ARGUMENTS, ids=lambda value: type(value).__name__)
def test_arguments_that_could_not_be_read_again_are_refused(value):
    with pytest.raises(ParameterError, match="a checkpoint cannot hold it"):
        to_json("X", "argument", value)


def test_arguments_that_are_lists_stay_lists():
    for value in ([1, (2, [3])], ([],), {"a": [1]}):
        assert from_json(json.loads(json.dumps(to_json("X", "argument", value)))) == value

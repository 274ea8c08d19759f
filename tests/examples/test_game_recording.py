"""What is recorded of environments is what a replay buffer would have been given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from benchmarks._lib.game_recording import Recording, is_recorded, record
from examples._lib.catch import Catch


class Short(Catch):
    """Catch that runs out of time after some steps, and counts how often it was reset."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit, self._step = limit, 0

    def reset(self, **kwargs: Any) -> Any:
        self._step = 0
        return super().reset(**kwargs)

    def step(self, action: Any) -> Any:
        observation, reward, terminated, _, info = super().step(action)
        self._step += 1
        return observation, reward, terminated, self._step == self._limit, info


def environments() -> DummyVecEnv:
    env = DummyVecEnv([lambda: Short(7), lambda: Short(11), Catch])
    env.seed(3)
    return env


def player() -> Any:
    random = np.random.default_rng(0)
    return lambda observations: random.integers(3, size=len(observations))


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = str(tmp_path_factory.mktemp("recording"))
    record(folder, environments(), 200, player())
    return Recording(folder)


def test_every_step_is_what_the_environments_did(recording: Recording) -> None:
    env, play = environments(), player()
    observations = env.reset()
    ends = 0
    for number in range(recording.steps):
        actions = play(observations)
        following, rewards, dones, infos = env.step(actions)
        step = recording.step(number)
        np.testing.assert_array_equal(step.obs, observations)
        np.testing.assert_array_equal(step.action, actions)
        np.testing.assert_array_equal(step.reward, rewards)
        np.testing.assert_array_equal(step.done, dones)
        for index, info in enumerate(infos):
            last = info["terminal_observation"] if dones[index] else following[index]
            np.testing.assert_array_equal(step.next_obs[index], last)
            assert step.infos[index]["TimeLimit.truncated"] == info["TimeLimit.truncated"]
        observations, ends = following, ends + int(dones.sum())
    assert ends > 20


def test_every_step_comes_in_arrays_of_its_own(recording: Recording) -> None:
    step = recording.step(5)
    step.obs[:] = 0
    step.next_obs[:] = 0
    assert recording.step(5).obs.any()
    assert recording.step(5).next_obs.any()


def test_spaces_are_those_of_the_environments(recording: Recording) -> None:
    observations, actions = recording.spaces
    assert observations == spaces.Box(0, 255, (84, 84, 1), np.uint8)
    assert actions == spaces.Discrete(3)


def test_a_recording_is_there_when_it_is_complete(tmp_path: Path) -> None:
    assert not is_recorded(str(tmp_path))

    def breaks_off(observations: Any) -> Any:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        record(str(tmp_path), environments(), 3, breaks_off)
    assert not is_recorded(str(tmp_path))
    record(str(tmp_path), environments(), 3, player())
    assert is_recorded(str(tmp_path))

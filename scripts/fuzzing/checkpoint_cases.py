"""Small buffers of several classes, filled, and what is done with them once they were loaded from anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedHerReplayBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
)

_N_ENVS, _ACTIONS = 2, spaces.Discrete(2)
_GOAL = spaces.Box(-9, 9, (70,), np.float32)
_IMAGE = spaces.Box(0, 255, (4, 9, 9), np.uint8)
_DICT = spaces.Dict({"image": _IMAGE, "vec": spaces.Box(-9, 9, (3,), np.float32)})
_GOALS = spaces.Dict({"observation": _IMAGE, "achieved_goal": _GOAL, "desired_goal": _GOAL})


@dataclass(frozen=True)
class Case:
    """A buffer to be saved.

    :param label: what it is called in tables
    :param buffer: the buffer, filled
    :param use: what is done with one that was loaded
    :param replaced: what it is loaded with
    """

    label: str
    buffer: Any
    use: Callable[[Any], None]
    replaced: dict[str, Any] = field(default_factory=dict)

    def attack(self, folder: Path) -> None:
        """Load what is in a folder, and use it."""
        self.use(type(self.buffer).load(folder, "cpu", **self.replaced))


class _Idle(gym.Env[Any, Any]):
    """An environment that is asked for rewards only."""

    observation_space, action_space = _GOALS, _ACTIONS

    def compute_reward(self, achieved: Any, _desired: Any, _infos: Any) -> Any:
        return np.zeros(len(achieved), np.float32)


def class_cases() -> Iterator[Case]:
    """What is kept in blocks of arrays, dictionaries, rollouts and goals."""
    # Arrays of more than 4 KB are not in the manifest, which says where they are.
    cells: Any = {"layout": "cells", "compression_method": "gzip"}
    yield _replay("blocks", CompressedReplayBuffer(1200, _IMAGE, _ACTIONS, "cpu", _N_ENVS, **cells))
    yield _replay("dict", CompressedDictReplayBuffer(16, _DICT, _ACTIONS, "cpu", _N_ENVS, **cells))
    for label, kind, space, steps in (
        ("rollout", CompressedRolloutBuffer, _IMAGE, 5),
        ("rollout full", CompressedRolloutBuffer, _IMAGE, 8),
        ("rollout dict", CompressedDictRolloutBuffer, _DICT, 8),
    ):
        rollout: Any = kind(8, space, _ACTIONS, "cpu", n_envs=_N_ENVS, **cells)
        _collect(rollout, steps)
        yield Case(label, rollout, _use_rollout)
    env = DummyVecEnv([_Idle] * _N_ENVS)
    goals = CompressedHerReplayBuffer(16, _GOALS, _ACTIONS, env, "cpu", _N_ENVS, copy_info_dict=True, **cells)
    yield _replay("goals", goals, env=env)


def _replay(label: str, buffer: Any, **replaced: Any) -> Case:
    _play(buffer, 20)
    return Case(label, buffer, _use_replay, replaced)


def _use_replay(buffer: Any) -> None:
    for _ in range(3):
        buffer.sample(30)
    if buffer.n_envs == _N_ENVS and buffer.observation_space in (_IMAGE, _DICT, _GOALS):
        _play(buffer, 20)
        buffer.sample(30)


def _use_rollout(buffer: Any) -> None:
    if not buffer.full and buffer.n_envs == _N_ENVS and buffer.observation_space in (_IMAGE, _DICT):
        _collect(buffer, buffer.buffer_size - buffer.pos)
    if buffer.full:
        for _ in buffer.get(4):
            pass


def _observation(space: spaces.Space[Any], step: int) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _observation(part, step) for key, part in space.spaces.items()}
    found = np.zeros((_N_ENVS, *(space.shape or ())), space.dtype)
    found[..., step % 3] = step % 9
    return found


def _play(buffer: Any, steps: int) -> None:
    zeros = np.zeros(_N_ENVS)
    for step in range(steps):
        obs, following = (_observation(buffer.observation_space, number) for number in (step, step + 1))
        infos = [{"step": np.int32(step), "list": [step, ("x", None)]} for _ in range(_N_ENVS)]
        buffer.add(obs, following, zeros.reshape(-1, 1).astype(int), zeros, np.full(_N_ENVS, step % 4 == 3), infos)


def _collect(buffer: Any, steps: int) -> None:
    zeros = np.zeros(_N_ENVS)
    for step in range(steps):
        obs = _observation(buffer.observation_space, step)
        buffer.add(obs, zeros.reshape(-1, 1), zeros, zeros, th.zeros(_N_ENVS), th.zeros(_N_ENVS))

"""``VecRecord``: vectorized environments that are recorded while somebody plays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Union

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording.buffers import BaseRecordBuffer
from sb3_extra_buffers.recording.wrappers.frames import What, recording_for
from sb3_extra_buffers.recording.wrappers.tape import FeaturesOf, Tape
from sb3_extra_buffers.recording.wrappers.vec_tape import VecTape

#: Which environments are recorded.
Envs = Union[int, Sequence[int], Literal["all"]]


class VecRecord(VecEnvWrapper):
    """
    Record what happens in some of several environments, each by itself. Nothing that they return is changed.

    Steps are those of ``RecordEnv``. The last frame of an episode is the true one, from ``terminal_observation``. For
    ``what="render"`` it is taken by the wrapper ``TerminalFrame``, which environments in this process get from here;
    those in other processes must have been made with it. Needs the extra ``sb3``.

    :param venv: the environments
    :param recording: where to; one for each environment that is recorded. ``None`` makes them, as ``RecordEnv`` does
    :param envs: the number of the environment to record, several numbers, or ``"all"``
    :param what: ``"observation"`` or ``"render"``, for which the environments need ``render_mode="rgb_array"``
    :param key: which part of the observation, if it is a dictionary
    :param size: how many steps each recording keeps
    :param features: makes the features of a frame of the ``info`` that came with it
    :param options: more arguments of the recordings that are made, such as ``compression_method``
    """

    def __init__(
        self,
        venv: VecEnv,
        recording: BaseRecordBuffer | Sequence[BaseRecordBuffer] | None = None,
        *,
        envs: Envs = 0,
        what: What = "observation",
        key: str | None = None,
        size: int = 40_000,
        features: FeaturesOf | None = None,
        **options: Any,
    ) -> None:
        super().__init__(venv)
        owner = type(self).__name__
        numbers = _numbers(owner, envs, venv.num_envs)
        given = [recording] if isinstance(recording, BaseRecordBuffer) else recording
        if given is not None and len(given) != len(numbers):
            allowed = f"{len(numbers)} environments are recorded, each needs one"
            raise ParameterError(owner, "recording", f"{len(given)} of them", allowed)

        def maker(frame: Any) -> BaseRecordBuffer:
            return recording_for(owner, frame, size, options, "hand over a FramelessRecordBuffer for each")

        tapes = [Tape(owner, maker if given is None else given[place], features) for place in range(len(numbers))]
        self._tapes = [VecTape(owner, venv, number, tape, what, key) for number, tape in zip(numbers, tapes)]
        self._actions: Any = None

    @property
    def recordings(self) -> list[BaseRecordBuffer]:
        """What was recorded, in the order of ``envs``."""
        return [follower.tape.recording for follower in self._tapes]

    @property
    def recording(self) -> BaseRecordBuffer:
        """What was recorded of the first environment that is recorded."""
        return self._tapes[0].tape.recording

    def reset(self) -> VecEnvObs:
        """Begin an episode everywhere."""
        observations = self.venv.reset()
        for follower in self._tapes:
            follower.begin(observations)
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Do something everywhere."""
        self._actions = np.array(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for what comes of it, and record it."""
        observations, rewards, dones, infos = self.venv.step_wait()
        for follower in self._tapes:
            follower.step(self._actions, observations, rewards, dones, infos)
        return observations, rewards, dones, infos


def _numbers(owner: str, envs: Envs, count: int) -> list[int]:
    numbers = list(range(count)) if envs == "all" else [envs] if isinstance(envs, int) else list(envs)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ParameterError(owner, "envs", envs, "it must be one environment, several different ones, or 'all'")
    return [int(number) for number in numbers]

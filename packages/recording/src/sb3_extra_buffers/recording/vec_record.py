"""``VecRecord``: records environments of a vectorized environment, each as if it were alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Union

import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording.base_buffer import BaseRecordBuffer
from sb3_extra_buffers.recording.episode_recorder import (
    EpisodeRecorder,
    FeatureFunction,
    RecordingFactory,
    What,
    check_render_mode,
    check_what,
    recording_for,
    select_observation,
)
from sb3_extra_buffers.recording.record_env import TERMINAL_FRAME, TerminalFrame

#: Which environments are recorded.
Envs = Union[int, Sequence[int], Literal["all"]]


class VecEpisodeRecorder:
    """Records one environment of a vectorized environment, with the true last frame of each episode.

    :param owner: class name, for errors
    :param venv: all environments
    :param number: number of the recorded environment
    :param recorder: records the steps
    :param what: ``"observation"`` or ``"render"``
    :param key: key of a Dict observation
    """

    def __init__(
        self, owner: str, venv: VecEnv, number: int, recorder: EpisodeRecorder, what: What, key: str | None
    ) -> None:
        check_what(owner, what)
        if not isinstance(number, int) or not 0 <= number < venv.num_envs:
            raise ParameterError(owner, "env", number, f"there are environments 0 to {venv.num_envs - 1}")
        self._owner, self._venv, self._number, self._recorder = owner, venv, number, recorder
        self._what, self._key = what, key
        if what == "render":
            check_render_mode(owner, venv.get_attr("render_mode", [number])[0])
            _keep_terminal_frames(owner, venv, number)

    @property
    def recording(self) -> BaseRecordBuffer:
        """The recording."""
        return self._recorder.recording

    def begin(self, observations: Any) -> None:
        """Begin an episode after a reset.

        :param observations: observations of all environments
        """
        self._recorder.begin(self._frame(observations), self._venv.unwrapped.reset_infos[self._number])

    def step(self, actions: Any, observations: Any, rewards: Any, dones: Any, infos: Sequence[dict[str, Any]]) -> None:
        """Record a step of the environment. The parameters are those of all environments.

        :param actions: the actions
        :param observations: the new observations; where an episode is over, the first ones of the next episode
        :param rewards: the rewards
        :param dones: whether episodes are over
        :param infos: the infos
        """
        number = self._number
        info, is_done = infos[number], bool(dones[number])
        frame = self._terminal_frame(info) if is_done else self._frame(observations)
        truncated = is_done and bool(info.get("TimeLimit.truncated", False))
        self._recorder.step(actions[number], rewards[number], frame, info, done=is_done, truncated=truncated)
        if is_done:
            self.begin(observations)

    def _frame(self, observations: Any) -> Any:
        if self._what == "render":
            return self._venv.env_method("render", indices=[self._number])[0]
        if isinstance(observations, dict):
            own = {key: part[self._number] for key, part in observations.items()}
        else:
            own = observations[self._number]
        return select_observation(self._owner, own, self._key)

    def _terminal_frame(self, info: dict[str, Any]) -> Any:
        if self._what == "render":
            return info[TERMINAL_FRAME]
        return select_observation(self._owner, info["terminal_observation"], self._key)


def _keep_terminal_frames(owner: str, venv: VecEnv, number: int) -> None:
    if venv.env_is_wrapped(TerminalFrame, [number])[0]:
        return
    inner = venv.unwrapped
    if not isinstance(inner, DummyVecEnv):
        allowed = "the environments are reset before their last image can be rendered"
        hint = "Create them with wrapper_class=TerminalFrame, which keeps that image."
        raise ParameterError(owner, "what", "render", allowed, hint)
    inner.envs[number] = TerminalFrame(inner.envs[number])


class VecRecord(VecEnvWrapper):
    """
    Record one or several environments of a vectorized environment. What it returns is unchanged.

    Steps are those of ``RecordEnv``. The last frame of an episode is the true one, from ``terminal_observation``. For
    ``what="render"`` it comes from the wrapper ``TerminalFrame``, which is added to environments of this process;
    environments of other processes must be created with it. Needs the extra ``sb3``.

    :param venv: the environments
    :param recording: one recording for each recorded environment; ``None`` creates them as ``RecordEnv`` does
    :param envs: number of the recorded environment, several numbers, or ``"all"``
    :param what: ``"observation"`` or ``"render"``; ``"render"`` needs ``render_mode="rgb_array"``
    :param key: key of a Dict observation
    :param size: number of steps kept by each recording
    :param features: returns the features of a frame from its ``info``
    :param options: other arguments of the created recordings, such as ``compression_method``
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
        features: FeatureFunction | None = None,
        **options: Any,
    ) -> None:
        super().__init__(venv)
        owner = type(self).__name__
        numbers = _numbers(owner, envs, venv.num_envs)
        given = [recording] if isinstance(recording, BaseRecordBuffer) else recording
        if given is not None and len(given) != len(numbers):
            allowed = f"{len(numbers)} environments are recorded, each needs one recording"
            raise ParameterError(owner, "recording", f"{len(given)} recordings", allowed)

        def create(frame: Any) -> BaseRecordBuffer:
            return recording_for(owner, frame, size, options, "pass a FramelessRecordBuffer for each environment")

        targets: Sequence[BaseRecordBuffer | RecordingFactory] = given or [create] * len(numbers)
        self._recorders = [
            VecEpisodeRecorder(owner, venv, number, EpisodeRecorder(owner, target, features), what, key)
            for number, target in zip(numbers, targets)
        ]
        self._actions: Any = None

    @property
    def recordings(self) -> list[BaseRecordBuffer]:
        """The recordings, in the order of ``envs``."""
        return [recorder.recording for recorder in self._recorders]

    @property
    def recording(self) -> BaseRecordBuffer:
        """The recording of the first recorded environment."""
        return self._recorders[0].recording

    def reset(self) -> VecEnvObs:
        """Reset all environments and begin their episodes."""
        observations = self.venv.reset()
        for recorder in self._recorders:
            recorder.begin(observations)
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        """Start a step in all environments."""
        self._actions = np.array(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step and record it."""
        observations, rewards, dones, infos = self.venv.step_wait()
        for recorder in self._recorders:
            recorder.step(self._actions, observations, rewards, dones, infos)
        return observations, rewards, dones, infos


def _numbers(owner: str, envs: Envs, count: int) -> list[int]:
    numbers = list(range(count)) if envs == "all" else [envs] if isinstance(envs, int) else list(envs)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ParameterError(owner, "envs", envs, "it must be one environment, several different ones, or 'all'")
    return [int(number) for number in numbers]

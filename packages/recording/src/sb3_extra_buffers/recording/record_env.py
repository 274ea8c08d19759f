"""Gymnasium wrappers: ``RecordEnv`` records an environment, ``TerminalFrame`` keeps the last image of an episode."""

from __future__ import annotations

from typing import Any

import gymnasium

from sb3_extra_buffers.recording.base_buffer import BaseRecordBuffer
from sb3_extra_buffers.recording.episode_recorder import (
    EpisodeRecorder,
    FeatureFunction,
    What,
    check_render_mode,
    check_what,
    recording_for,
    select_observation,
)

#: Key in ``info`` of the image that ``TerminalFrame`` keeps.
TERMINAL_FRAME = "terminal_frame"


class RecordEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """
    Record the steps of an environment. What the environment returns is unchanged.

    Each step is recorded with the frame in which the action was chosen. The last frame of an episode is a step of its
    own, with ``done``, and with an action and a reward of 0. Needs the extra ``gym``.

    :param env: the environment
    :param recording: the recording; ``None`` creates a ``RecordBuffer`` with the first frame, whose only feature is
        whether the episode was truncated after this frame, by a time limit or by a reset
    :param what: ``"observation"`` or ``"render"``; ``"render"`` needs ``render_mode="rgb_array"``
    :param key: key of a Dict observation
    :param size: number of steps kept by the recording
    :param features: returns the features of a frame from its ``info``
    :param options: other arguments of the created recording, such as ``compression_method``
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        recording: BaseRecordBuffer | None = None,
        *,
        what: What = "observation",
        key: str | None = None,
        size: int = 40_000,
        features: FeatureFunction | None = None,
        **options: Any,
    ) -> None:
        super().__init__(env)
        owner = type(self).__name__
        check_what(owner, what)
        if what == "render":
            check_render_mode(owner, env.render_mode)
        self._what, self._key = what, key

        def create(frame: Any) -> BaseRecordBuffer:
            return recording_for(owner, frame, size, options, "pass a FramelessRecordBuffer")

        self._recorder = EpisodeRecorder(owner, create if recording is None else recording, features)

    @property
    def recording(self) -> BaseRecordBuffer:
        """The recording."""
        return self._recorder.recording

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._recorder.begin(self._frame(observation), info)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step and record it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        frame, is_done = self._frame(observation), terminated or truncated
        self._recorder.step(action, reward, frame, info, done=is_done, truncated=is_done and not terminated)
        return observation, reward, terminated, truncated, info

    def _frame(self, observation: Any) -> Any:
        if self._what == "render":
            return self.env.render()
        return select_observation(type(self).__name__, observation, self._key)


class TerminalFrame(gymnasium.Wrapper[Any, Any, Any, Any]):
    """
    Store the last rendered image of an episode in ``info["terminal_frame"]``.

    A vectorized environment resets an environment as soon as its episode is over, so the image cannot be rendered
    later. ``VecRecord`` needs it for ``what="render"``. Pass this class to ``make_vec_env`` as ``wrapper_class``.

    :param env: the environment, created with ``render_mode="rgb_array"``
    """

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and render the image if the episode is over."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info[TERMINAL_FRAME] = self.env.render()
        return observation, reward, terminated, truncated, info

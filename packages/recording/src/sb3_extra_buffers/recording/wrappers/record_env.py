"""``RecordEnv``: an environment that is recorded while somebody plays."""

from __future__ import annotations

from typing import Any

import gymnasium

from sb3_extra_buffers.recording.buffers import BaseRecordBuffer
from sb3_extra_buffers.recording.wrappers.frames import What, check_rendering, check_what, recording_for, seen
from sb3_extra_buffers.recording.wrappers.tape import FeaturesOf, Tape


class RecordEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """
    Record what happens in an environment. Nothing that it returns is changed.

    Each step is recorded with the frame that the action was chosen in view of. The last frame of an episode is a step
    of its own, with ``done``, and with an action and a reward of 0. Needs the extra ``gym``.

    :param env: the environment
    :param recording: where to; ``None`` makes a ``RecordBuffer`` when the first frame is there, of which the only
        feature says whether an episode was cut off after this frame, be it by a time limit or by a reset
    :param what: ``"observation"`` or ``"render"``, for which the environment needs ``render_mode="rgb_array"``
    :param key: which part of the observation, if it is a dictionary
    :param size: how many steps the recording keeps
    :param features: makes the features of a frame of the ``info`` that came with it
    :param options: more arguments of the recording that is made, such as ``compression_method``
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        recording: BaseRecordBuffer | None = None,
        *,
        what: What = "observation",
        key: str | None = None,
        size: int = 40_000,
        features: FeaturesOf | None = None,
        **options: Any,
    ) -> None:
        super().__init__(env)
        owner = type(self).__name__
        check_what(owner, what)
        if what == "render":
            check_rendering(owner, env.render_mode)
        self._what, self._key = what, key

        def maker(frame: Any) -> BaseRecordBuffer:
            return recording_for(owner, frame, size, options, "hand over a FramelessRecordBuffer")

        self._tape = Tape(owner, maker if recording is None else recording, features)

    @property
    def recording(self) -> BaseRecordBuffer:
        """What was recorded."""
        return self._tape.recording

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._tape.begin(self._frame(observation), info)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Do something, and record it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        frame, is_done = self._frame(observation), terminated or truncated
        self._tape.step(action, reward, frame, info, done=is_done, cut_off=is_done and not terminated)
        return observation, reward, terminated, truncated, info

    def _frame(self, observation: Any) -> Any:
        return self.env.render() if self._what == "render" else seen(type(self).__name__, observation, self._key)

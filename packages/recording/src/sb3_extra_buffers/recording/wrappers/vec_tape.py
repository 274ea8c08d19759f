"""``VecTape``: one of several environments, recorded as if it were alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording.wrappers.frames import What, check_rendering, check_what, seen
from sb3_extra_buffers.recording.wrappers.tape import Tape
from sb3_extra_buffers.recording.wrappers.terminal_frame import TERMINAL_FRAME, TerminalFrame


class VecTape:
    """Follows one environment through what a vectorized one returns. Its last frames are the true ones.

    :param owner: who records, for errors
    :param venv: all environments
    :param number: of the one to follow
    :param tape: where to record
    :param what: ``"observation"`` or ``"render"``
    :param key: which part of the observation, if it is a dictionary
    """

    def __init__(self, owner: str, venv: VecEnv, number: int, tape: Tape, what: What, key: str | None) -> None:
        check_what(owner, what)
        if not isinstance(number, int) or not 0 <= number < venv.num_envs:
            raise ParameterError(owner, "env", number, f"there are environments 0 to {venv.num_envs - 1}")
        self._owner, self._venv, self._number, self.tape = owner, venv, number, tape
        self._what, self._key = what, key
        if what == "render":
            check_rendering(owner, venv.get_attr("render_mode", [number])[0])
            _take_last_pictures(owner, venv, number)

    def begin(self, observations: Any) -> None:
        """All environments were reset, or this one has just begun an episode.

        :param observations: of all environments
        """
        self.tape.begin(self._frame(observations), self._reset_info())

    def step(self, actions: Any, observations: Any, rewards: Any, dones: Any, infos: Sequence[dict[str, Any]]) -> None:
        """All environments made a step.

        :param actions: one for each
        :param observations: of all of them; where an episode is over, of the next one
        :param rewards: one for each
        :param dones: whether episodes are over
        :param infos: what they say about it
        """
        number = self._number
        info, is_done = infos[number], bool(dones[number])
        frame = self._last_frame(info) if is_done else self._frame(observations)
        cut_off = is_done and bool(info.get("TimeLimit.truncated", False))
        self.tape.step(actions[number], rewards[number], frame, info, done=is_done, cut_off=cut_off)
        if is_done:
            self.begin(observations)

    def _frame(self, observations: Any) -> Any:
        if self._what == "render":
            return self._venv.env_method("render", indices=[self._number])[0]
        if isinstance(observations, dict):
            return seen(self._owner, {key: part[self._number] for key, part in observations.items()}, self._key)
        return seen(self._owner, observations[self._number], self._key)

    def _last_frame(self, info: dict[str, Any]) -> Any:
        if self._what == "render":
            return info[TERMINAL_FRAME]
        return seen(self._owner, info["terminal_observation"], self._key)

    def _reset_info(self) -> dict[str, Any]:
        return self._venv.unwrapped.reset_infos[self._number]


def _take_last_pictures(owner: str, venv: VecEnv, number: int) -> None:
    if venv.env_is_wrapped(TerminalFrame, [number])[0]:
        return
    inner = venv.unwrapped
    if not isinstance(inner, DummyVecEnv):
        allowed = "the next episode begins before anybody can take a picture of the last state"
        hint = "Make the environments with wrapper_class=TerminalFrame, which keeps one."
        raise ParameterError(owner, "what", "render", allowed, hint)
    inner.envs[number] = TerminalFrame(inner.envs[number])

"""Feeds: pass the steps of an evaluation on to replay buffers and recordings."""

from __future__ import annotations

import enum
import inspect
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.training_utils.pending import PendingEpisodes
from sb3_extra_buffers.training_utils.steps import Player, Step

#: Record what the environment renders instead of the observation.
RENDER = "render"


class ReplayLike(Protocol):
    """A buffer for transitions, such as ``ReplayBuffer`` and its subclasses."""

    n_envs: int

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> Any: ...


class RecordLike(Protocol):
    """A recording of one stream of frames, such as the ``RecordBuffer`` of ``sb3_extra_buffers.recording``."""

    def add(self, frame: Any, reward: Any, action: Any, features: Any = None, *, done: bool = False) -> Any: ...


class Kind(enum.Enum):
    """The kind of a buffer; the value is a parameter that only its ``add`` has."""

    REPLAY = "next_obs"
    RECORD = "frame"


def as_list(buffer: Any) -> list[Any]:
    """None, one or several buffers, as a list."""
    # Recordings can be iterated, too: over their steps.
    if buffer is None or hasattr(buffer, "add"):
        return [] if buffer is None else [buffer]
    try:
        return list(buffer)
    except TypeError:
        return [buffer]


def kind_of(buffer: Any) -> Kind:
    """The kind of a buffer by the parameters of its ``add``, whatever its class."""
    try:
        names = list(inspect.signature(buffer.add).parameters)
    except (AttributeError, TypeError, ValueError):  # there is no add, or one without a signature, as that of a set
        names = []
    for kind in Kind:
        if kind.value in names:
            return kind
    hint = ""
    if "episode_start" in names:
        hint = (
            "A rollout needs values and probabilities of the policy that is trained; to fill several rollout buffers "
            "with one stream, train with vec_buf.DummyVecRolloutBuffer."
        )
    allowed = "it must be a replay buffer, a record buffer or a list of such"
    raise ParameterError("eval_model", "buffer", type(buffer).__name__, allowed, hint)


class TimedBuffer:
    """A buffer and the seconds spent in its ``add``."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self.seconds = 0.0

    def add(self, *args: Any, **kwargs: Any) -> None:
        begin = time.perf_counter()
        self.buffer.add(*args, **kwargs)
        self.seconds += time.perf_counter() - begin


class Feed(ABC):
    """Passes steps on to buffers."""

    @abstractmethod
    def take(self, step: Step, counting: NDArray[np.bool_]) -> None:
        """Pass on one step of all environments; ``counting`` says which of them play an episode that counts."""

    def finish(self) -> None:  # noqa: B027 - most feeds have nothing to do here
        """Called after the last step."""


class ReplayFeed(Feed):
    """For replay buffers with all environments: every step as it is, also of episodes that do not count."""

    def __init__(self, buffers: list[TimedBuffer]) -> None:
        self._buffers = buffers

    def take(self, step: Step, counting: NDArray[np.bool_]) -> None:  # noqa: ARG002
        for buffer in self._buffers:
            step.add_to(buffer)

    def finish(self) -> None:
        for timed in self._buffers:
            truncate = getattr(timed.buffer, "truncate_last_trajectory", None)
            if truncate is not None:
                with warnings.catch_warnings():  # HER warns that it truncates an episode, as intended
                    warnings.simplefilter("ignore", UserWarning)
                    truncate()


class ColumnFeed(ReplayFeed):
    """For replay buffers with fewer environments than play: whole episodes that count."""

    def __init__(self, buffers: list[TimedBuffer], n_columns: int, n_envs: int) -> None:
        super().__init__(buffers)
        self._pending = PendingEpisodes(n_columns, n_envs)

    def take(self, step: Step, counting: NDArray[np.bool_]) -> None:
        self._pending.put(step, counting)
        for complete in self._pending.steps():
            super().take(complete, counting)


class RecordFeed(Feed):
    """For recordings: the episodes of one environment that count.

    If a recording has a single feature, it is whether the episode was truncated with this step.

    :param env: number of the environment
    :param frame: returns the current frame
    """

    def __init__(self, buffer: TimedBuffer, env: int, frame: Callable[[], Any]) -> None:
        self._buffer, self._env, self._frame = buffer, env, frame
        self._has_truncated = getattr(buffer.buffer, "feature_num", 0) == 1
        self._shown = frame()

    def take(self, step: Step, counting: NDArray[np.bool_]) -> None:
        if not counting[self._env]:
            return
        env, is_done = self._env, bool(step.dones[self._env])
        truncated = is_done and bool(step.infos[env].get("TimeLimit.truncated", False))
        features = [truncated] if self._has_truncated else None
        self._buffer.add(self._shown, step.rewards[env], step.actions[env], features, done=is_done)
        self._shown = self._frame()


def open_feeds(
    buffers: list[TimedBuffer],
    env: VecEnv,
    player: Player,
    record_env: int,
    record_frames: str | None,
    counting: NDArray[np.bool_],
) -> list[Feed]:
    """Make the feeds for some buffers. Buffers with the same number of environments share one."""
    feeds: list[Feed] = []
    columns: dict[int, list[TimedBuffer]] = {}
    for timed in buffers:
        if kind_of(timed.buffer) is Kind.REPLAY:
            columns.setdefault(timed.buffer.n_envs, []).append(timed)
        else:
            _check_record_env(env, record_env, counting)
            feeds.append(RecordFeed(timed, record_env, _frame_source(env, player, record_env, record_frames)))
    for count, group in columns.items():
        if env.num_envs % count:
            allowed = f"the number of environments, {env.num_envs}, must be a multiple of it"
            raise ParameterError("eval_model", "buffer.n_envs", count, allowed)
        feeds.append(ReplayFeed(group) if count == env.num_envs else ColumnFeed(group, count, env.num_envs))
    return feeds


def _check_record_env(env: VecEnv, number: int, counting: NDArray[np.bool_]) -> None:
    if not 0 <= number < env.num_envs:
        allowed = f"it must be the number of an environment, 0 to {env.num_envs - 1}"
        raise ParameterError("eval_model", "record_env", number, allowed)
    if not counting[number]:
        first = f"the first {int(counting.sum())} of {env.num_envs} environments"
        allowed = f"there would be nothing to record: only {first} have an episode to play"
        raise ParameterError("eval_model", "record_env", number, allowed, "Record one of these, or play more episodes.")


def _frame_source(env: VecEnv, player: Player, number: int, what: str | None) -> Callable[[], Any]:
    """A function that returns the current frame of one environment."""
    space = env.observation_space
    keys = list(space) if isinstance(space, spaces.Dict) else []
    if what == RENDER and what not in keys:
        return lambda: _render(env, number)
    if keys and what in keys:
        return lambda: player.observations[what][number]
    if not keys and what is None:
        return lambda: player.observations[number]
    allowed = f"it must be {RENDER!r}, or " + (f"a key of the observations: {keys}" if keys else "left out")
    raise ParameterError("eval_model", "record_frames", what, allowed)


def _render(env: VecEnv, number: int) -> Any:
    (frame,) = env.env_method("render", indices=[number])
    if not isinstance(frame, np.ndarray):
        allowed = "the environment must be made with render_mode='rgb_array'"
        raise ParameterError("eval_model", "record_frames", RENDER, allowed, f"It renders {type(frame).__name__}.")
    return frame

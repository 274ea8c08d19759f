"""Feeds: pass the steps of an evaluation on to replay buffers, by whole episodes if need be, and to recordings."""

from __future__ import annotations

import inspect
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.training_utils.steps import Player, Step

#: Record what the environment renders instead of the observation.
RENDER = "render"
_ROLLOUTS = (
    "A rollout needs values and probabilities of the policy that is trained; to fill several rollout buffers with one "
    "stream, train with vec_buf.DummyVecRolloutBuffer."
)
#: Of pending episodes: steps that are decoded together, and cells at first.
_STEPS_AT_ONCE = 32
_FIRST_CELLS = 128


class ReplayLike(Protocol):
    """A buffer for transitions, such as ``ReplayBuffer`` and its subclasses."""

    n_envs: int

    def add(self, obs: Any, next_obs: Any, action: Any, reward: Any, done: Any, infos: Any) -> Any: ...


class RecordLike(Protocol):
    """A recording of one stream of frames, such as the ``RecordBuffer`` of ``sb3_extra_buffers.recording``."""

    def add(self, frame: Any, reward: Any, action: Any, features: Any = None, *, done: bool = False) -> Any: ...


def as_list(buffer: Any) -> list[Any]:
    """None, one or several buffers, as a list."""
    if buffer is None:
        return []
    # Recordings can be iterated, too: over their steps.
    return list(buffer) if isinstance(buffer, Iterable) and not hasattr(buffer, "add") else [buffer]


def is_replay(buffer: Any) -> bool:
    """Whether a buffer is a replay buffer or a recording, by the parameters of its ``add``, whatever its class."""
    try:
        names = list(inspect.signature(buffer.add).parameters)
    except (AttributeError, TypeError, ValueError):  # there is no add, or one without a signature, as that of a set
        names = []
    if "next_obs" in names or "frame" in names:
        return "next_obs" in names
    allowed = "it must be a replay buffer, a record buffer or a list of such"
    hint = _ROLLOUTS if "episode_start" in names else ""
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

    def finish(self) -> None:
        """Called after the last step."""
        if hasattr(self.buffer, "truncate_last_trajectory"):
            with warnings.catch_warnings():  # HER warns that it truncates an episode, as intended
                warnings.simplefilter("ignore", UserWarning)
                self.buffer.truncate_last_trajectory()


class _Transition(NamedTuple):
    cell: int
    next_cell: int
    action: NDArray[Any]
    scaled_action: NDArray[Any]
    reward: Any
    done: bool
    info: dict[str, Any]


class PendingEpisodes:
    """Takes steps of many environments and returns steps of a few columns, each with whole episodes in order.

    A column follows one environment to the end of its episode, then the environment with the most pending transitions.
    There is a step when every column has a transition. Pending observations are compressed and stored once.
    """

    def __init__(self, n_columns: int, n_envs: int) -> None:
        self._queues: list[deque[_Transition]] = [deque() for _ in range(n_envs)]
        #: The cell of the current observation of each environment, if it was stored as the next one of another.
        self._current: list[int | None] = [None] * n_envs
        self._followed: list[int | None] = [None] * n_columns
        #: Pending observations by key; ``None`` is the key of a space without keys. They grow as needed.
        self._arrays: dict[Any, CompressedArray] = {}
        #: Cells whose observation is not needed any more.
        self._free: list[int] = []

    def __len__(self) -> int:
        return sum(map(len, self._queues))

    @property
    def nbytes(self) -> int:
        """Size of the pending observations, and of those that were not replaced yet."""
        return sum(array.nbytes_stored for array in self._arrays.values())

    def put(self, step: Step, which: NDArray[np.bool_]) -> None:
        """Append the transitions of some environments; the others must be at the beginning of an episode."""
        envs = np.flatnonzero(which)
        starting = np.array([env for env in envs if self._current[env] is None], np.intp)
        for env, first in zip(starting, self._store(step.observations, starting)):
            self._current[env] = first
        for env, next_cell in zip(envs, self._store(step.next_observations, envs)):
            cell, done = self._current[env], bool(step.dones[env])
            assert cell is not None
            # The last observation of an episode is stored already, and may be the largest part of the dictionary.
            info = {key: value for key, value in step.infos[env].items() if key != "terminal_observation"}
            action, scaled = step.actions[env], step.scaled_actions[env]
            self._queues[env].append(_Transition(cell, next_cell, action, scaled, step.rewards[env], done, info))
            self._current[env] = None if done else next_cell

    def _store(self, observations: Any, envs: NDArray[Any]) -> list[int]:
        """Store the observations of some environments and return their cells."""
        parts = observations if isinstance(observations, dict) else {None: observations}
        while len(envs) > len(self._free):
            self._grow(parts)
        cells = [self._free.pop() for _ in envs]
        for key, part in parts.items() if cells else ():
            self._arrays[key][cells] = part[envs]
        return cells

    def _grow(self, parts: dict[Any, NDArray[Any]]) -> None:
        before = max(map(len, self._arrays.values()), default=0)
        count = max(_FIRST_CELLS, 2 * before)
        for key, part in parts.items():
            grown = CompressedArray(count, part.dtype, part.shape[1:])
            for start in range(0, before, _FIRST_CELLS):  # in parts, because the whole may be large when decoded
                some = slice(start, start + _FIRST_CELLS)
                grown[some] = self._arrays[key][some]
            self._arrays[key] = grown
        self._free += range(before, count)

    def steps(self) -> Iterator[Step]:
        """All complete steps, with one transition for each column."""
        found: list[list[_Transition]] = []
        while self._is_complete():
            step = []
            for column, env in enumerate(self._followed):
                assert env is not None
                step.append(self._queues[env].popleft())
                if step[-1].done:
                    self._followed[column] = None
            found.append(step)
            if len(found) == _STEPS_AT_ONCE:  # decoding many observations takes hardly longer than decoding a few
                yield from self._decode(found)
                found = []
        yield from self._decode(found)

    def _is_complete(self) -> bool:
        for column, env in enumerate(self._followed):
            if env is None:
                free = [env for env in range(len(self._queues)) if env not in self._followed]
                env = max(free, key=lambda env: len(self._queues[env]))
            if not self._queues[env]:
                return False
            self._followed[column] = env
        return True

    def _decode(self, steps: list[list[_Transition]]) -> Iterator[Step]:
        if not steps:
            return
        transitions = [one for step in steps for one in step]
        # Within an episode, the next observation of a transition is the observation of the one after it.
        cells = list(dict.fromkeys([one.cell for one in transitions] + [one.next_cell for one in transitions]))
        index = {cell: number for number, cell in enumerate(cells)}
        found = {key: array[cells] for key, array in self._arrays.items()}
        self._free += [one.cell for one in transitions] + [one.next_cell for one in transitions if one.done]
        for step in steps:
            current, following, actions, scaled, rewards, dones, infos = zip(*step)
            obs, next_obs = (
                {key: part[[index[cell] for cell in of]] for key, part in found.items()} for of in (current, following)
            )
            given = np.stack(actions), np.stack(scaled), np.stack(rewards), np.array(dones, np.bool_)
            yield Step(obs.get(None, obs), next_obs.get(None, next_obs), *given, list(infos))


#: Gets each step, and for each environment whether it plays an episode that counts.
Feed = Callable[[Step, NDArray[np.bool_]], None]


def _replay_feed(buffers: list[TimedBuffer], n_columns: int, n_envs: int) -> Feed:
    """For replay buffers: every step of all environments as it is, also of episodes that do not count.

    Buffers with fewer environments than play get whole episodes that count.
    """
    pending = None if n_columns == n_envs else PendingEpisodes(n_columns, n_envs)

    def feed(step: Step, counting: NDArray[np.bool_]) -> None:
        if pending is not None:
            pending.put(step, counting)
        for complete in [step] if pending is None else pending.steps():
            for buffer in buffers:
                complete.add_to(buffer)

    return feed


def _record_feed(buffer: TimedBuffer, env: int, frame: Callable[[], Any]) -> Feed:
    """For a recording: the episodes of one environment that count. ``frame`` returns its current frame.

    If a recording has a single feature, it is whether the episode was truncated with this step.
    """
    has_truncated, shown = getattr(buffer.buffer, "feature_num", 0) == 1, frame()

    def feed(step: Step, counting: NDArray[np.bool_]) -> None:
        nonlocal shown
        if counting[env]:
            is_done = bool(step.dones[env])
            truncated = is_done and bool(step.infos[env].get("TimeLimit.truncated", False))
            features = [truncated] if has_truncated else None
            buffer.add(shown, step.rewards[env], step.actions[env], features, done=is_done)
            shown = frame()

    return feed


def open_feeds(
    buffers: list[TimedBuffer], player: Player, record_env: int, record_frames: str | None, counting: NDArray[np.bool_]
) -> list[Feed]:
    """Make the feeds for some buffers. Buffers with the same number of environments share one."""
    feeds: list[Feed] = []
    n_envs, columns = player.env.num_envs, dict[int, list[TimedBuffer]]()
    for timed in buffers:
        if is_replay(timed.buffer):
            columns.setdefault(timed.buffer.n_envs, []).append(timed)
        else:
            frame = _frame_source(player, record_env, record_frames, counting)
            feeds.append(_record_feed(timed, record_env, frame))
    for count, group in columns.items():
        if n_envs % count:
            allowed = f"the number of environments, {n_envs}, must be a multiple of it"
            raise ParameterError("eval_model", "buffer.n_envs", count, allowed)
        feeds.append(_replay_feed(group, count, n_envs))
    return feeds


def _frame_source(player: Player, number: int, what: str | None, counting: NDArray[np.bool_]) -> Callable[[], Any]:
    """A function that returns the current frame of one environment, which must play an episode that counts."""
    if not 0 <= number < len(counting):
        allowed = f"it must be the number of an environment, 0 to {len(counting) - 1}"
        raise ParameterError("eval_model", "record_env", number, allowed)
    if not counting[number]:
        first = f"the first {int(counting.sum())} of {len(counting)} environments"
        allowed = f"there would be nothing to record: only {first} have an episode to play"
        raise ParameterError("eval_model", "record_env", number, allowed, "Record one of these, or play more episodes.")
    space = player.env.observation_space
    keys = list(space) if isinstance(space, spaces.Dict) else []
    if what == RENDER and what not in keys:
        return lambda: _render(player.env, number)
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

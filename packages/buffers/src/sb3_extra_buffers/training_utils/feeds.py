"""How steps get into buffers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.training_utils.steps import Step
from sb3_extra_buffers.training_utils.waiting import WaitingEpisodes


class Timed:
    """A buffer, and the seconds that were spent in its ``add``."""

    def __init__(self, buffer: Any) -> None:
        self.buffer = buffer
        self.seconds = 0.0

    def add(self, *args: Any, **kwargs: Any) -> None:
        begin = time.perf_counter()
        self.buffer.add(*args, **kwargs)
        self.seconds += time.perf_counter() - begin


class Feed(Protocol):
    """Knows what its buffers take of a step."""

    def take(self, step: Step, counting: NDArray[np.bool_]) -> None:
        """
        Hand over one step.

        :param step: of all environments
        :param counting: which of them were playing an episode that counts
        """

    def finish(self) -> None:
        """No step follows."""


class ReplayFeed:
    """For replay buffers with a column for each environment: steps as they are, also those of surplus episodes."""

    def __init__(self, buffers: list[Timed]) -> None:
        self._buffers = buffers

    def take(self, step: Step, counting: NDArray[np.bool_]) -> None:  # noqa: ARG002
        for buffer in self._buffers:
            buffer.add(
                step.observations, step.next_observations, step.scaled_actions, step.rewards, step.dones, step.infos
            )

    def finish(self) -> None:
        for timed in self._buffers:
            truncate = getattr(timed.buffer, "truncate_last_trajectory", None)
            if truncate is None:
                continue
            with warnings.catch_warnings():  # HER warns that an episode is cut off: so it is
                warnings.simplefilter("ignore", UserWarning)
                truncate()


class ColumnFeed(ReplayFeed):
    """For replay buffers with fewer columns than there are environments: whole episodes, those that count."""

    def __init__(self, buffers: list[Timed], n_columns: int, n_envs: int) -> None:
        super().__init__(buffers)
        self._waiting = WaitingEpisodes(n_columns, n_envs)

    def take(self, step: Step, counting: NDArray[np.bool_]) -> None:
        self._waiting.put(step, counting)
        for row in self._waiting.rows():
            super().take(row, counting)


class RecordFeed:
    """For recordings: the episodes of one environment that count.

    If a recording has one feature, it says whether the episode was cut off with this step: what it says wherever
    environments are recorded.

    :param env: its number
    :param frame: looks at the environments as they are, and returns the frame to record
    """

    def __init__(self, buffer: Timed, env: int, frame: Callable[[], Any]) -> None:
        self._buffer, self._env, self._frame = buffer, env, frame
        self._tells_cut_off = getattr(buffer.buffer, "feature_num", 0) == 1
        self._shown = frame()

    def take(self, step: Step, counting: NDArray[np.bool_]) -> None:
        if not counting[self._env]:
            return
        env, is_done = self._env, bool(step.dones[self._env])
        cut_off = is_done and bool(step.infos[env].get("TimeLimit.truncated", False))
        features = [cut_off] if self._tells_cut_off else None
        self._buffer.add(self._shown, step.rewards[env], step.actions[env], features, done=is_done)
        self._shown = self._frame()

    def finish(self) -> None:
        pass

"""What a recording is about, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.recording.clip import Clip
from sb3_extra_buffers.recording.memory import MemoryUse
from sb3_extra_buffers.recording.recording import Recording


class _Counted(Recording, Protocol):
    """A recording that knows how it came to be."""

    begins_whole: bool

    @property
    def steps(self) -> int: ...

    @property
    def memory(self) -> MemoryUse: ...

    def without_frames(self) -> Clip: ...


@dataclass(frozen=True)
class ActionHistogram:
    """How often which action was taken.

    Actions that are integers are counted as they are: ``values`` are those that occur, one to a row, and ``counts`` has
    a number for each. Of others, every component is counted by itself: row ``i`` of ``counts`` has a number for each
    class of component ``i``, whose bounds are row ``i`` of ``values``.
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]
    is_discrete: bool


@dataclass(frozen=True)
class Statistics:
    """What was recorded, in numbers."""

    #: How many steps are kept.
    kept: int
    #: How many steps were ever recorded.
    steps: int
    #: How many episodes the steps that are kept belong to.
    episodes: int
    #: The sum of the rewards of each episode that is kept as a whole, oldest first.
    returns: NDArray[np.float64]
    #: The steps of each of these; without the last frame, where that is a step of its own and was said to be.
    lengths: NDArray[np.int64]
    actions: ActionHistogram
    #: What the frames take.
    memory: MemoryUse

    def __str__(self) -> str:
        lines = [f"{self.kept:,} steps of {self.steps:,} kept, {self.episodes:,} episodes"]
        if len(self.returns):
            lines[0] += f", {len(self.returns):,} of them whole"
            lines += [f"  {name}: {_spread(numbers)}" for name, numbers in self._per_episode()]
        if self.actions.is_discrete and len(self.actions.counts):
            order = np.argsort(-self.actions.counts, kind="stable")[:8]
            total = self.actions.counts.sum()
            shares = (f"{self.actions.values[n].tolist()}: {self.actions.counts[n] / total:.0%}" for n in order)
            more = len(self.actions.counts) - len(order)
            lines.append(f"  actions: {', '.join(shares)}" + (f", and {more} more" if more else ""))
        if self.memory.raw_nbytes:
            lines.append(f"  frames: {self.memory}")
        return "\n".join(lines)

    def _per_episode(self) -> list[tuple[str, NDArray[Any]]]:
        return [("returns", self.returns), ("lengths", self.lengths)]


def statistics_of(recording: _Counted, bins: int, terminal_frames: bool) -> Statistics:
    """Count everything but frames.

    :param recording: what to count
    :param bins: how many classes to sort values of actions into that are no integers
    :param terminal_frames: whether the last step of a finished episode is nothing but its last frame
    """
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or bins < 1:
        raise ParameterError(type(recording).__name__, "bins", bins, "it must be an integer of at least 1")
    clip, episodes = recording.without_frames(), recording.episodes
    whole = [
        episode for episode in episodes if clip.dones[episode.stop - 1] and (episode.start or recording.begins_whole)
    ]
    starts, lengths = np.array([episode.start for episode in whole], np.int64), [len(episode) for episode in whole]
    # Whole episodes follow each other, up to the end of the last of them.
    rewards = clip.rewards[: starts[-1] + lengths[-1] if whole else 0].astype(np.float64)
    returns = np.add.reduceat(rewards, starts) if whole else np.empty(0)
    return Statistics(
        len(recording),
        recording.steps,
        len(episodes),
        returns,
        np.array(lengths, np.int64) - terminal_frames,
        action_histogram(clip.actions[~clip.dones] if terminal_frames else clip.actions, bins),
        recording.memory,
    )


def action_histogram(actions: NDArray[Any], bins: int) -> ActionHistogram:
    """Count actions.

    :param actions: shape ``(n, *action_shape)``
    :param bins: how many classes to sort values into that are no integers
    """
    if actions.dtype.kind in "biu":
        values, counts = np.unique(actions, axis=0, return_counts=True)
        return ActionHistogram(values, counts.astype(np.int64), True)
    columns = actions.reshape(len(actions), int(np.prod(actions.shape[1:]))).T
    sorted_ = [np.histogram(column[np.isfinite(column)].astype(np.float64), bins) for column in columns]
    counts = np.array([found[0] for found in sorted_], np.int64).reshape(len(columns), bins)
    return ActionHistogram(np.array([found[1] for found in sorted_]).reshape(len(columns), bins + 1), counts, False)


def _spread(numbers: NDArray[Any]) -> str:
    return f"{numbers.min():,.6g} to {numbers.max():,.6g}, mean {numbers.mean():,.6g}"

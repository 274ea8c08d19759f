"""Statistics of a recording: episodes, actions and memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.recording.casting import check_integer
from sb3_extra_buffers.recording.protocol import Recording, public


@public
@dataclass(frozen=True)
class MemoryUse:
    """Size of the frames of a recording in bytes. All sizes are 0 without frames.

    :param raw_nbytes: uncompressed size
    :param stored_nbytes: size of the payloads, in memory or in a file
    :param overhead: other memory: indices, tables, reference frames
    :param codec: how frames are stored, with the reason for an automatic choice
    """

    raw_nbytes: int
    stored_nbytes: int
    overhead: int
    codec: str

    @property
    def ratio(self) -> float:
        """Uncompressed size divided by the memory used, overhead included."""
        used = self.stored_nbytes + self.overhead
        return self.raw_nbytes / used if used and self.raw_nbytes else 1.0

    def __str__(self) -> str:
        used = self.stored_nbytes + self.overhead
        return f"{_with_unit(self.raw_nbytes)} as {_with_unit(used)}, {self.ratio:.1f} times smaller; {self.codec}"


#: Memory use of a recording without frames.
NO_FRAMES = MemoryUse(0, 0, 0, "no frames")


def raw_nbytes(count: int, shape: tuple[int, int, int], dtype: np.dtype[Any]) -> int:
    """Uncompressed size of frames."""
    return count * math.prod(shape) * dtype.itemsize


def _with_unit(nbytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"


@public
@dataclass(frozen=True)
class ActionHistogram:
    """How often each action was taken. Each component of actions that are not integers has its own histogram.

    :param values: integer actions: the distinct actions, one per row; else row ``i`` holds the edges of the bins of
        component ``i``
    :param counts: integer actions: one number for each of ``values``; else row ``i`` holds the counts of component
        ``i``
    :param is_discrete: whether actions are integers
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]
    is_discrete: bool


@public
@dataclass(frozen=True)
class Statistics:
    """Statistics of a recording.

    :param kept: number of steps kept
    :param steps: number of steps ever recorded
    :param episodes: number of episodes, cut and unfinished ones included
    :param returns: sum of the rewards of each whole episode, oldest first
    :param lengths: number of steps of each whole episode; with ``terminal_frames``, without its terminal frame
    :param actions: how often each action was taken
    :param memory: memory used by the frames
    """

    kept: int
    steps: int
    episodes: int
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    actions: ActionHistogram
    memory: MemoryUse

    def __str__(self) -> str:
        lines = [f"{self.kept:,} steps of {self.steps:,} kept, {self.episodes:,} episodes"]
        if len(self.returns):
            lines[0] += f", {len(self.returns):,} of them whole"
            lines += [f"  returns: {_spread(self.returns)}", f"  lengths: {_spread(self.lengths)}"]
        if self.actions.is_discrete and len(self.actions.counts):
            order = np.argsort(-self.actions.counts, kind="stable")[:8]
            total = self.actions.counts.sum()
            shares = (f"{self.actions.values[n].tolist()}: {self.actions.counts[n] / total:.0%}" for n in order)
            more = len(self.actions.counts) - len(order)
            lines.append(f"  actions: {', '.join(shares)}" + (f", and {more} more" if more else ""))
        if self.memory.raw_nbytes:
            lines.append(f"  frames: {self.memory}")
        return "\n".join(lines)


class _Counted(Recording, Protocol):
    begins_whole: bool

    @property
    def steps(self) -> int: ...

    @property
    def memory(self) -> MemoryUse: ...


def statistics_of(recording: _Counted, bins: int, terminal_frames: bool) -> Statistics:
    """Compute the statistics of a recording.

    :param recording: the recording
    :param bins: bins of the histogram of actions that are not integers
    :param terminal_frames: whether the last step of a finished episode only holds its last frame
    """
    check_integer(type(recording).__name__, "bins", bins)
    clip, episodes = recording.without_frames(), recording.episodes
    whole = [
        episode for episode in episodes if clip.dones[episode.stop - 1] and (episode.start or recording.begins_whole)
    ]
    starts, lengths = np.array([episode.start for episode in whole], np.int64), [len(episode) for episode in whole]
    # Whole episodes are contiguous.
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
    :param bins: bins of the histogram of actions that are not integers
    """
    if actions.dtype.kind in "biu":
        values, counts = np.unique(actions, axis=0, return_counts=True)
        return ActionHistogram(values, counts.astype(np.int64), True)
    columns = actions.reshape(len(actions), int(np.prod(actions.shape[1:]))).T
    histograms = [np.histogram(column[np.isfinite(column)].astype(np.float64), bins) for column in columns]
    counts = np.array([found[0] for found in histograms], np.int64).reshape(len(columns), bins)
    edges = np.array([found[1] for found in histograms]).reshape(len(columns), bins + 1)
    return ActionHistogram(edges, counts, False)


def _spread(numbers: NDArray[Any]) -> str:
    return f"{numbers.min():,.6g} to {numbers.max():,.6g}, mean {numbers.mean():,.6g}"

"""What is said about a step below its frame, and the numbers in it as short texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.recording.recording import Recording


@dataclass(frozen=True)
class Caption:
    """What is said about a step.

    :param step: its number in the recording
    :param episode: number of its episode; 0 is the oldest that is kept
    :param step_in_episode: its number in the episode
    :param progress: how much of the episode was seen after it, from 0 to 1
    :param reward: what it was worth
    :param total: what its episode was worth so far, as far as it is kept
    :param action: what was done, as text
    :param done: whether it was the last of its episode
    """

    step: int
    episode: int
    step_in_episode: int
    progress: float
    reward: float
    total: float
    action: str
    done: bool


class Captions:
    """Captions of the steps of a recording.

    :param recording: what the steps are of
    :param action_names: a name for each action, if actions are integers
    """

    def __init__(self, recording: Recording, action_names: Sequence[str] | None = None) -> None:
        self._episodes = recording.episodes
        self._starts = np.array([episode.start for episode in self._episodes])
        self._clip = recording.without_frames()
        self._names = action_names
        self._totals = np.concatenate([np.cumsum(self._rewards(episode)) for episode in self._episodes])

    def _rewards(self, steps: range) -> NDArray[np.float64]:
        return self._clip.rewards[steps.start : steps.stop].astype(np.float64)

    def of(self, step: int) -> Caption:
        """What is said about a step.

        :param step: its number
        """
        number = int(np.searchsorted(self._starts, step, "right")) - 1
        episode = self._episodes[number]
        within = step - episode.start
        return Caption(
            step,
            number,
            within,
            (within + 1) / len(episode),
            float(self._clip.rewards[step]),
            float(self._totals[step]),
            action_text(self._clip.actions[step], self._names),
            bool(self._clip.dones[step]),
        )


def action_text(action: Any, names: Sequence[str] | None = None) -> str:
    """An action in few characters: integers as they are, with their names; of floats, two decimals.

    :param action: a number or an array of numbers
    :param names: a name for each action, if actions are integers
    """
    values = np.asarray(action).reshape(-1)
    if values.dtype.kind == "f":
        return " ".join(f"{value:.2f}" for value in values)
    if names is not None and len(values) == 1 and 0 <= values[0] < len(names):
        return f"{values[0]} {names[int(values[0])]}"
    return " ".join(str(int(value)) for value in values)


def reward_text(reward: float) -> str:
    """A reward with its sign; nothing but a zero for none.

    :param reward: the number
    """
    return "0" if reward == 0 else f"{reward:+.4g}"

"""What is read from a recording: one step, or several that follow each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Step(NamedTuple):
    """One step, decoded."""

    #: Shape ``(H, W, C)``; ``None`` for recordings without frames.
    frame: NDArray[Any] | None
    reward: Any
    #: A number, or an array of the shape of an action.
    action: Any
    #: One row of the features; ``None`` if there are none.
    features: Any
    #: Whether this step was the last of its episode.
    done: bool


@dataclass(frozen=True)
class Clip:
    """Consecutive steps, decoded, oldest first."""

    #: Shape ``(n, H, W, C)``; ``None`` for recordings without frames.
    frames: NDArray[Any] | None
    #: Shape ``(n,)``.
    rewards: NDArray[Any]
    #: Shape ``(n, *action_shape)``.
    actions: NDArray[Any]
    #: Shape ``(n, k)``, or ``(n,)`` and structured if the features have several dtypes; ``None`` if there are none.
    features: NDArray[Any] | None
    #: Shape ``(n,)``: whether this step was the last of its episode.
    dones: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rewards)

    def __getitem__(self, index: int) -> Step:
        """One of the steps."""
        frame = None if self.frames is None else self.frames[index]
        features = None if self.features is None else self.features[index]
        return Step(frame, self.rewards[index], self.actions[index], features, bool(self.dones[index]))

"""The contract of a recording: the types that reading returns, and what exports and statistics use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Class = TypeVar("Class", bound=type)


def public(kind: Class) -> Class:
    """Set the module of a class to the public package. Pickles then do not name a private module.

    Sphinx does not find comments of attributes of such a class: describe attributes in its docstring.
    """
    kind.__module__ = "sb3_extra_buffers.recording"
    return kind


@public
class Step(NamedTuple):
    """One decoded step.

    :param frame: shape ``(H, W, C)``; ``None`` for recordings without frames
    :param reward: a number
    :param action: a number, or an array with the shape of an action
    :param features: one row of features; ``None`` if there are none
    :param done: whether this step was the last of its episode
    """

    frame: NDArray[Any] | None
    reward: Any
    action: Any
    features: Any
    done: bool


@public
@dataclass(frozen=True)
class Clip:
    """Several decoded steps.

    :param frames: shape ``(n, H, W, C)``; ``None`` for recordings without frames
    :param rewards: shape ``(n,)``
    :param actions: shape ``(n, *action_shape)``
    :param features: shape ``(n, k)``, or ``(n,)`` and structured if the features have several dtypes; ``None`` if there
        are none
    :param dones: shape ``(n,)``: whether the step was the last of its episode
    """

    frames: NDArray[Any] | None
    rewards: NDArray[Any]
    actions: NDArray[Any]
    features: NDArray[Any] | None
    dones: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rewards)

    def __getitem__(self, index: int) -> Step:
        """Return one step."""
        frame = None if self.frames is None else self.frames[index]
        features = None if self.features is None else self.features[index]
        return Step(frame, self.rewards[index], self.actions[index], features, bool(self.dones[index]))


class Recording(Protocol):
    """Steps that can be read. Step 0 is the oldest step kept."""

    @property
    def frame_shape(self) -> tuple[int, int, int] | None:
        """``(H, W, C)`` of a frame; ``None`` for recordings without frames."""

    def __len__(self) -> int:
        """Number of steps kept."""

    def read(self, start: int, stop: int) -> Clip:
        """Decode consecutive steps in one batch.

        :param start: first step; 0 is the oldest step kept
        :param stop: end of the range, exclusive, at most ``len()``
        """

    @property
    def episodes(self) -> list[range]:
        """The steps of each episode, oldest first. The first may be cut, the last may be unfinished."""

    def without_frames(self) -> Clip:
        """Return all steps, oldest first, without their frames."""


#: Limits of a batch: the size of its decoded frames, and the number of steps.
_BATCH_SIZE = 1 << 24
_MAX_BATCH_STEPS = 4096


def steps_per_batch(frame_size: int) -> int:
    """Number of steps to decode at a time, so that a batch takes some megabytes.

    :param frame_size: size of one frame; 0 without frames
    """
    return max(1, min(_MAX_BATCH_STEPS, _BATCH_SIZE // max(1, frame_size)))

"""``BaseRecordBuffer``: the newest steps of what was recorded, in a ring."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.memory import untouched
from sb3_extra_buffers.recording.asked import Asked
from sb3_extra_buffers.recording.buffers.arguments import as_asked, constructor_arguments
from sb3_extra_buffers.recording.clip import Clip
from sb3_extra_buffers.recording.columns import Actions, Features, Rewards
from sb3_extra_buffers.recording.fitting import as_dtype
from sb3_extra_buffers.recording.images import AUTO
from sb3_extra_buffers.recording.reading import Readable
from sb3_extra_buffers.recording.saved import SavedRecording

Buffer = TypeVar("Buffer", bound="BaseRecordBuffer")
_DEFAULT_DTYPES = (np.uint8, np.float32)


class BaseRecordBuffer(Readable):
    """What the three kinds of record buffers have in common.

    :param size: how many steps are kept; then the oldest make room
    :param dtypes: of the frames, of the rewards, and of each feature
    :param action_dtype: of the actions; ``None`` leaves it to the first one
    :param action_shape: of one action; ``None`` leaves it to the first one
    """

    def __init__(
        self,
        size: int = 40_000,
        dtypes: Sequence[Any] | None = None,
        *,
        action_dtype: Any = None,
        action_shape: int | tuple[int, ...] | None = None,
    ) -> None:
        owner = type(self).__name__
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise ParameterError(owner, "size", size, "it must be an integer of at least 1")
        self._size = int(size)
        given = _DEFAULT_DTYPES if dtypes is None else dtypes
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) < 2:
            allowed = "it must be a list: that of the frames, that of the rewards, and one for each feature"
            raise ParameterError(owner, "dtypes", dtypes, allowed)
        #: Of the frames, of the rewards, and of each feature.
        self.dtypes = [as_dtype(owner, dtype) for dtype in given]
        self._rewards = Rewards(owner, self.max_size, self.dtypes[1])
        self._actions = Actions(owner, self.max_size, action_dtype, action_shape)
        self._features = Features(owner, self.max_size, self.dtypes[2:])
        self._dones: NDArray[np.bool_] = untouched(self.max_size, np.bool_)
        self._begin()

    def _begin(self) -> None:
        #: How many steps were added to this buffer, and how many were recorded before that and are not here.
        self._added, self._before = 0, 0
        #: Whether the oldest step that is kept is the first of its episode.
        self.begins_whole = True

    # What subclasses say about their frames.

    #: Where those that are added have their channels.
    _channels = AUTO
    #: Whether there are any.
    keeps_frames = False
    frame_shape: tuple[int, int, int] | None = None
    #: All frames, in the order of the ring: shape ``(size, C, H, W)``.
    frames: Any

    @abstractmethod
    def _fit_frame(self, frame: Any) -> Any: ...

    @abstractmethod
    def _write_frame(self, place: int, frame: Any) -> None: ...

    @abstractmethod
    def _write_frames(self, first: int, frames: NDArray[Any] | None) -> None: ...

    @abstractmethod
    def _read_frames(self, places: NDArray[np.int64]) -> NDArray[Any] | None: ...

    # The rest is the same for all of them.

    @property
    def max_size(self) -> int:
        """How many steps are kept."""
        return self._size

    @property
    def max_index(self) -> int:
        """The highest index of the arrays."""
        return self._size - 1

    @property
    def rewards(self) -> NDArray[Any]:
        """All rewards, in the order of the ring."""
        return self._rewards.array

    @property
    def actions(self) -> NDArray[Any]:
        """All actions, in the order of the ring."""
        return self._actions.array

    @property
    def features(self) -> NDArray[Any]:
        """All features, in the order of the ring; of no columns if there are none."""
        return self._features.array

    @property
    def dones(self) -> NDArray[np.bool_]:
        """Which steps were the last of their episodes, in the order of the ring."""
        return self._dones

    @property
    def feature_num(self) -> int:
        """How many features each step has."""
        return self._features.count

    @property
    def use_features(self) -> bool:
        """Whether steps have features."""
        return self.feature_num > 0

    @property
    def frame_dtype(self) -> np.dtype[Any]:
        """Of the elements of a frame."""
        return self.dtypes[0]

    @property
    def asked(self) -> Asked:
        """What was asked for when it was made."""
        return Asked(self._channels, *self._actions.asked)

    @property
    def steps(self) -> int:
        """How many steps were ever recorded."""
        return self._before + self._added

    def __len__(self) -> int:
        return min(self._added, self.max_size)

    def __repr__(self) -> str:
        frames = "no frames" if self.frame_shape is None else f"frames of {self.frame_shape}, {self.frame_dtype}"
        return f"<{type(self).__name__} with {len(self):,} of {self.max_size:,} steps, {frames}>"

    def add(self, frame: Any, reward: Any, action: Any, features: Any = None, *, done: Any = False) -> None:
        """Record a step. If something about it is wrong, nothing is recorded.

        :param frame: what was seen
        :param reward: what it was worth
        :param action: what was done: a number, or an array of numbers
        :param features: a value for each feature
        :param done: whether this was the last step of its episode
        """
        image, worth = self._fit_frame(frame), self._rewards.fit(reward)
        act, extras, last = self._actions.fit(action), self._features.fit(features), bool(done)
        place = self._added % self.max_size
        self._write_frame(place, image)
        self._actions.write(place, act)
        self._features.write(place, extras)
        self._rewards.array[place] = worth
        if self._added >= self.max_size:
            self.begins_whole = bool(self._dones[place])  # of what was just overwritten: the oldest comes behind it
        self._dones[place] = last
        self._added += 1

    @classmethod
    def load(cls: type[Buffer], path: str | os.PathLike[str], size: int | None = None, **options: Any) -> Buffer:
        """Make a buffer of a recording that was saved, to go on recording as the one that was saved would.

        :param path: which file
        :param size: how many steps are kept; ``None`` for as many as in the buffer that was saved. If there are more
            in the file, the newest are taken.
        :param options: what else the class takes, such as ``compression_method``
        """
        with SavedRecording(path) as saved:
            buffer = cls(**constructor_arguments(saved, size, cls.keeps_frames), **as_asked(saved, options))
            first = max(0, len(saved) - buffer.max_size)
            buffer._before = saved.steps - len(saved) + first
            buffer.begins_whole = bool(saved.dones[first - 1]) if first else saved.begins_whole
            for clip in saved.batches(first=first, frames=cls.keeps_frames):
                buffer._take(clip)
        return buffer

    def _take(self, clip: Clip) -> None:
        """Record steps that fit, and for which there is room."""
        places = slice(self._added, self._added + len(clip))
        self._write_frames(places.start, clip.frames)
        self._actions.take(places, clip.actions)
        self._rewards.array[places], self._dones[places] = clip.rewards, clip.dones
        if clip.features is not None:
            self._features.array[places] = clip.features
        self._added = places.stop

    def reset(self) -> None:
        """Forget all steps."""
        self._actions.forget()
        self._begin()

    def _gather(self, steps: NDArray[np.int64], frames: bool = True) -> Clip:
        places = (steps + max(self._added - self.max_size, 0)) % self.max_size
        images = self._read_frames(places) if frames else None
        features = self.features[places] if self.use_features else None
        return Clip(images, self.rewards[places], self.actions[places], features, self.dones[places])

"""``BaseRecordBuffer``: a ring of the newest recorded steps; base class of all record buffers."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import BufferStateError, FileContentError, ParameterError
from sb3_extra_buffers.memory import untouched
from sb3_extra_buffers.recording.base_recording import BaseRecording
from sb3_extra_buffers.recording.casting import as_dtype, check_integer
from sb3_extra_buffers.recording.columns import Actions, Features, Rewards
from sb3_extra_buffers.recording.file_format import Metadata
from sb3_extra_buffers.recording.frame_format import AUTO
from sb3_extra_buffers.recording.protocol import Clip, public
from sb3_extra_buffers.recording.saved_recording import SavedRecording

Buffer = TypeVar("Buffer", bound="BaseRecordBuffer")
_DEFAULT_DTYPES = (np.uint8, np.float32)


@public
class BaseRecordBuffer(BaseRecording):
    """Base class of the record buffers.

    :param size: number of steps kept; then the oldest steps are overwritten
    :param dtypes: dtypes of the frames, of the rewards, and of each feature
    :param action_dtype: dtype of the actions; ``None``: set by the first action
    :param action_shape: shape of one action; ``None``: set by the first action
    :ivar dtypes: dtypes of the frames, of the rewards, and of each feature
    :ivar frames: all frames in ring order, shape ``(size, C, H, W)``
    :ivar frame_shape: ``(H, W, C)`` of a frame; ``None`` without frames
    :ivar keeps_frames: whether frames are kept
    :ivar begins_whole: whether the oldest step kept is the first of its episode
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
        self._size = check_integer(owner, "size", size)
        given = _DEFAULT_DTYPES if dtypes is None else dtypes
        if isinstance(given, str) or not isinstance(given, Sequence) or len(given) < 2:
            allowed = "it must be a list: dtype of the frames, dtype of the rewards, and one dtype for each feature"
            raise ParameterError(owner, "dtypes", dtypes, allowed)
        self.dtypes = [as_dtype(owner, dtype) for dtype in given]
        self._create_columns(action_dtype, action_shape)
        self._reset_counters()

    def _create_columns(self, action_dtype: Any, action_shape: int | tuple[int, ...] | None) -> None:
        owner = type(self).__name__
        self._rewards = Rewards(owner, self._size, self.dtypes[1])
        self._actions = Actions(owner, self._size, action_dtype, action_shape)
        self._features = Features(owner, self._size, self.dtypes[2:])
        self._dones: NDArray[np.bool_] = untouched(self._size, np.bool_)

    def _reset_counters(self) -> None:
        #: Number of steps added to this buffer, and number of steps recorded earlier that are not in it.
        self._added, self._before = 0, 0
        self.begins_whole = True

    # Subclasses define how frames are kept.

    #: Axis of the channels in added frames.
    _channels = AUTO
    keeps_frames = False
    frame_shape: tuple[int, int, int] | None = None
    frames: Any

    @abstractmethod
    def _convert_frame(self, frame: Any) -> Any: ...

    @abstractmethod
    def _write_frame(self, index: int, frame: Any) -> None: ...

    @abstractmethod
    def _write_frames(self, first: int, frames: NDArray[Any] | None) -> None: ...

    @abstractmethod
    def _read_frames(self, indices: NDArray[np.int64]) -> NDArray[Any] | None: ...

    @property
    def max_size(self) -> int:
        """Number of steps kept."""
        return self._size

    @property
    def max_index(self) -> int:
        """Largest index of the arrays."""
        return self._size - 1

    @property
    def rewards(self) -> NDArray[Any]:
        """All rewards in ring order."""
        return self._rewards.array

    @property
    def actions(self) -> NDArray[Any]:
        """All actions in ring order."""
        return self._actions.array

    @property
    def features(self) -> NDArray[Any]:
        """All features in ring order; an array without columns if there are none."""
        return self._features.array

    @property
    def dones(self) -> NDArray[np.bool_]:
        """Whether each step was the last of its episode, in ring order."""
        return self._dones

    @property
    def feature_num(self) -> int:
        """Number of features of a step."""
        return self._features.count

    @property
    def use_features(self) -> bool:
        """Whether steps have features."""
        return self.feature_num > 0

    @property
    def frame_dtype(self) -> np.dtype[Any]:
        """Dtype of the frames."""
        return self.dtypes[0]

    @property
    def asked(self) -> Metadata:
        """Metadata given when the buffer was created."""
        return Metadata(self._channels, self._actions.dtype, self._actions.shape)

    @property
    def steps(self) -> int:
        """Number of steps ever recorded."""
        return self._before + self._added

    def __len__(self) -> int:
        return min(self._added, self._size)

    def __repr__(self) -> str:
        frames = "no frames" if self.frame_shape is None else f"frames of {self.frame_shape}, {self.frame_dtype}"
        return f"<{type(self).__name__} with {len(self):,} of {self._size:,} steps, {frames}>"

    def add(self, frame: Any, reward: Any, action: Any, features: Any = None, *, done: Any = False) -> None:
        """Record a step. Raises on invalid values and then records nothing.

        :param frame: the frame
        :param reward: the reward
        :param action: a number, or an array of numbers
        :param features: one value per feature
        :param done: whether this step is the last of its episode
        """
        image, number = self._convert_frame(frame), self._rewards.convert(reward)
        taken, values, is_last = self._actions.convert(action), self._features.convert(features), bool(done)
        index = self._added % self._size
        self._write_frame(index, image)
        self._actions.write(index, taken)
        self._features.write(index, values)
        self._rewards.array[index] = number
        if self._added >= self._size:
            self.begins_whole = bool(self._dones[index])  # of the overwritten step, before the oldest step kept
        self._dones[index] = is_last
        self._added += 1

    @classmethod
    def load(cls: type[Buffer], path: str | os.PathLike[str], size: int | None = None, **options: Any) -> Buffer:
        """Create a buffer from a saved recording, to continue recording.

        :param path: the file
        :param size: number of steps kept; ``None``: as in the saved buffer. If the file holds more steps, the newest
            are loaded.
        :param options: other arguments of the class, such as ``compression_method``
        """
        with SavedRecording(path) as saved:
            try:
                buffer = cls(**_constructor_arguments(saved, size, cls.keeps_frames, options))
                first = max(0, len(saved) - buffer.max_size)
                buffer._before = saved.steps - len(saved) + first
                buffer.begins_whole = bool(saved.dones[first - 1]) if first else saved.begins_whole
                for clip in saved.batches(first=first, frames=cls.keeps_frames):
                    buffer._append(clip)
            except (MemoryError, OverflowError) as error:
                found = f"{len(saved):,} steps in a buffer of {saved.max_size if size is None else size:,} ({error})"
                hint = "Keep fewer: load(path, size)."
                raise FileContentError(str(path), "a recording that fits into memory", found, hint) from error
        return buffer

    def _append(self, clip: Clip) -> None:
        """Add converted steps to a buffer that has room for them."""
        indices = slice(self._added, self._added + len(clip))
        self._write_frames(indices.start, clip.frames)
        self._actions.write_all(indices, clip.actions)
        self._rewards.array[indices], self._dones[indices] = clip.rewards, clip.dones
        if clip.features is not None:
            self._features.array[indices] = clip.features
        self._added = indices.stop

    def reset(self) -> None:
        """Remove all steps."""
        self._actions.reset()
        self._reset_counters()

    def _gather(self, steps: NDArray[np.int64], frames: bool = True) -> Clip:
        indices = (steps + max(self._added - self._size, 0)) % self._size
        images = self._read_frames(indices) if frames else None
        features = self._features.array[indices] if self.use_features else None
        columns = self._rewards.array[indices], self._actions.array[indices]
        return Clip(images, *columns, features, self._dones[indices])

    # Pickles hold plain values and arrays, so that they do not depend on private classes.

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        actions, rewards, features = (state.pop(name) for name in ("_actions", "_rewards", "_features"))
        columns = {"actions": actions, "rewards": rewards, "features": features}
        arrays = {name: column.array.copy() for name, column in columns.items()} | {"dones": state.pop("_dones").copy()}
        request = {"dtype": actions.dtype, "shape": actions.shape, "is_decided": actions.is_decided}
        return {**state, "columns": arrays, "action_request": request}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "columns" not in state:
            found = "it was pickled by a version before 1, whose form is not read any more"
            raise BufferStateError(type(self).__name__, "be loaded from this pickle", found, "Record anew.")
        columns, request = state.pop("columns"), state.pop("action_request")
        self.__dict__.update(state)
        self._create_columns(request["dtype"], request["shape"])
        self._rewards.array, self._features.array, self._dones = (
            columns[name] for name in ("rewards", "features", "dones")
        )
        self._actions.restore(columns["actions"], request["is_decided"])


def _constructor_arguments(
    saved: SavedRecording, size: int | None, keeps_frames: bool, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a buffer for a saved recording; ``options`` override the metadata of the file.

    Shape and dtype that were set by the first action are not passed: they would count as given by the user.
    """
    if keeps_frames and saved.frame_shape is None:
        hint = "Use FramelessRecordBuffer.load."
        raise FileContentError(str(saved.path), "a recording with frames", "one without", hint)
    height, width, channels = saved.frame_shape or (1, 1, 1)
    features: list[Any] = []
    if saved.features is not None:
        kind = saved.features.dtype
        features = [kind[name] for name in kind.names] if kind.names else [kind] * saved.features.shape[-1]
    return {
        "res": (height, width),
        "ch_num": channels,
        "size": saved.max_size if size is None else size,
        "dtypes": [saved.frame_dtype, saved.rewards.dtype, *features],
        **vars(saved.asked),
        **options,
    }


def force_alloc_mem(mem: BaseRecordBuffer, val: Any = 0) -> None:
    """Fill the arrays of a recording, so that its memory is allocated now.

    The size of compressed frames is not known in advance, so their memory is not allocated.

    :param mem: a recording without steps
    :param val: value to fill it with
    """
    if len(mem):
        found, hint = f"{len(mem)} steps would be overwritten", "Call it before anything is recorded."
        raise BufferStateError(type(mem).__name__, "allocate its memory", found, hint)
    for array in (mem.frames, mem.rewards, mem.actions, mem.features):
        array.fill(val)

"""Replay buffers, and recordings, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.datasets.protocol import Block, Dataset, Episodes, Parts, Reader, reading
from sb3_extra_buffers.datasets.table import Sparse, Table
from sb3_extra_buffers.errors import BufferStateError, FileContentError, MissingExtraError, ParameterError
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.parquet import feature_columns
from sb3_extra_buffers.recording.protocol import Recording


class BufferDataset(Dataset):
    """The transitions of a replay buffer, oldest first, one environment after the other.

    :param source: name of the buffer, for messages
    :param buffer: a replay buffer of Stable-Baselines3, or one that is used like it
    """

    in_environment_units = False

    def __init__(self, source: str, buffer: Any) -> None:
        super().__init__(source)
        self._buffer = buffer
        self.observation_space, self.action_space = buffer.observation_space, buffer.action_space
        steps = self._steps()
        if not steps:
            hint = "Add transitions first."
            raise BufferStateError(type(buffer).__name__, "read its transitions", "it is empty", hint)
        #: Positions in the buffer, oldest first.
        self._positions = (buffer.pos - steps + np.arange(steps)) % buffer.buffer_size
        done, timeout = (
            np.asarray(flags[self._positions]).T.reshape(-1) != 0 for flags in (buffer.dones, buffer.timeouts)
        )
        ends = done.copy()
        ends[steps - 1 :: steps] = True
        stops = (np.flatnonzero(ends) + 1).astype(np.int64)
        starts = np.append(0, stops[:-1])
        last = stops - 1
        self.episodes = Episodes(starts, stops, (done & ~timeout)[last], (done & timeout)[last])

    def _steps(self) -> int:
        """Number of steps that can be read. A heap with a limit may have evicted the oldest."""
        buffer = self._buffer
        kept = buffer.size()
        if hasattr(buffer, "memory_report"):
            kept = buffer.memory_report().transitions // buffer.n_envs
        return int(kept) - self._oldest_is_invalid()

    def _oldest_is_invalid(self) -> int:
        """1 if the oldest observation is overwritten by the next observation of the newest step."""
        return int(bool(getattr(self._buffer, "optimize_memory_usage", False)) and bool(self._buffer.full))

    def reader(self) -> Reader:
        """Return a function that reads rows."""
        buffer, steps = self._buffer, len(self._positions)

        def read(start: int, stop: int) -> Block:
            envs, numbers = np.divmod(np.arange(start, stop), steps)
            positions = self._positions[numbers]
            if getattr(buffer, "optimize_memory_usage", False):
                following = _parts(buffer.observations, (positions + 1) % buffer.buffer_size, envs)
            else:
                following = _parts(buffer.next_observations, positions, envs)
            return Block(
                _parts(buffer.observations, positions, envs),
                following,
                np.asarray(buffer.actions[positions, envs]),
                np.asarray(buffer.rewards[positions, envs]),
                *self.episodes.flags(start, stop),
            )

        return read

    def close(self) -> None:
        """Do nothing."""


def _parts(arrays: Any, positions: NDArray[Any], envs: NDArray[Any]) -> Parts:
    by_key = arrays if isinstance(arrays, dict) else {"": arrays}
    return {key: np.asarray(array[positions, envs]) for key, array in by_key.items()}


def is_buffer(value: Any) -> bool:
    """Whether an object is used like a replay buffer of Stable-Baselines3.

    :param value: any object
    """
    needed = ("observations", "actions", "rewards", "dones", "timeouts", "n_envs", "pos", "full", "buffer_size")
    return all(hasattr(value, name) for name in needed)


def open_pickle(path: Path, trust_pickle: bool) -> BufferDataset:
    """Read a file of ``model.save_replay_buffer(path)``, as a whole.

    :param path: the file
    :param trust_pickle: must be true: reading a pickle runs the code that it names
    """
    if trust_pickle is not True:
        hint = "Set it only for a file that you trust: it can run any code."
        raise ParameterError("open_dataset", "trust_pickle", trust_pickle, "reading a pickle runs code", hint)
    load = require("stable_baselines3.common.save_util", "datasets of pickles").load_from_pkl
    with reading(str(path), "a pickled replay buffer"), path.open("rb") as file:
        buffer = load(file)
    if not is_buffer(buffer):
        raise FileContentError(str(path), "a pickled replay buffer", f"a {type(buffer).__name__}")
    return BufferDataset(str(path), buffer)


def open_checkpoint(path: Path) -> BufferDataset:
    """Open a checkpoint of a compressed replay buffer. Observations are read when they are needed.

    :param path: the folder
    """
    try:
        compressed: Any = import_module("sb3_extra_buffers.compressed")
    except ModuleNotFoundError as error:
        raise MissingExtraError("datasets of checkpoints", "sb3-extra-buffers", "") from error
    name = compressed.inspect(path).buffer
    kind = getattr(compressed, name, None) if name in compressed.__all__ else None
    if kind is None or "Replay" not in name:
        hint = "Load it with its class, and give the buffer instead of the path." if "Replay" in name else ""
        raise FileContentError(str(path), "a compressed replay buffer", f"a {name}", hint)
    return BufferDataset(str(path), kind.load(path, device="cpu"))


class RecordingTable(Table):
    """The steps of a recording: the columns ``frame``, ``action``, ``reward``, ``done``, and ``feature_0`` and so on.

    :param recording: the recording
    """

    def __init__(self, recording: Recording) -> None:
        self._recording, self.rows = recording, len(recording)
        if recording.frame_shape is None:
            raise FileContentError(type(recording).__name__, "a recording of observations", "one without frames")
        features = [name for name, _ in feature_columns(recording.read(0, min(1, self.rows)))]
        self.names = ["frame", "action", "reward", "done", *features]

    def read(self, names: Sequence[str], start: int, stop: int) -> dict[str, NDArray[Any] | Sparse]:
        """Read consecutive steps."""
        if "frame" in names:
            clip = self._recording.read(start, stop)
        else:
            clip = self._recording.gather(np.arange(start, stop), frames=False)  # type: ignore[attr-defined]
        found = {"frame": clip.frames, "action": clip.actions, "reward": clip.rewards, "done": clip.dones}
        found |= dict(feature_columns(clip))
        return {name: found[name] for name in names}  # type: ignore[misc]

    def clone(self) -> Table:
        """Return this table: any steps can be read."""
        return self

    def close(self) -> None:
        """Do nothing: the recording belongs to the caller."""

"""Data sets of Minari, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.datasets.protocol import NO_KEY, Block, Dataset, Episodes, Parts, Reader, reading
from sb3_extra_buffers.errors import FileContentError, ParameterError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import new_folder

_FEATURE = "datasets of Minari"
#: Entry of the metadata of an export: whether actions are in the range of the environment.
_UNITS = "sb3_extra_buffers_environment_units"


class MinariDataset(Dataset):
    """The episodes of a data set of Minari, each decoded as a whole.

    :param source: path or id, for messages
    :param dataset: a ``minari.MinariDataset``
    """

    def __init__(self, source: str, dataset: Any) -> None:
        super().__init__(source)
        self._storage, self._ids = dataset.storage, [int(number) for number in dataset.episode_indices]
        self.observation_space, self.action_space = dataset.observation_space, dataset.action_space
        with reading(source):
            self.in_environment_units = bool(self._storage.metadata.get(_UNITS, True))
            ends = [self._end(number) for number in self._ids]
        if not ends:
            raise FileContentError(source, "transitions", "no episodes")
        lengths, terminated, truncated = zip(*ends)
        stops = np.cumsum(np.array(lengths, np.int64))
        flags = (np.array(flag, np.bool_) for flag in (terminated, truncated))
        self.episodes = Episodes(stops - np.array(lengths, np.int64), stops, *flags)

    def _end(self, number: int) -> tuple[int, bool, bool]:
        """The length of an episode, and how it ended."""
        found = self._episode(number)
        ended = found["terminations"], found["truncations"]
        early = np.logical_or(*ended)[:-1]
        if early.any():
            problem = f"episode {number} goes on after step {int(np.flatnonzero(early)[0])}, where it ended"
            raise FileContentError(self.source, "episodes that end at their last step", problem)
        return len(found["rewards"]), bool(ended[0][-1]), bool(ended[1][-1])

    def _episode(self, number: int) -> dict[str, Any]:
        (found,) = self._storage.get_episodes([number])
        count = len(found["rewards"])
        if not count:
            raise FileContentError(self.source, "episodes with transitions", f"episode {number} without any")
        for part in _flat(found["observations"]).values():
            if len(part) != count + 1:
                problem = f"{len(part)} observations for {count} actions in episode {number}"
                raise FileContentError(self.source, "a final observation of each episode", problem)
        return dict(found)

    def reader(self) -> Reader:
        """Return a function that reads rows, and keeps the last episode."""
        kept: tuple[int, dict[str, Any]] = (-1, {})

        def episode(number: int) -> dict[str, Any]:
            nonlocal kept
            if kept[0] != number:
                kept = number, self._episode(self._ids[number])
            return kept[1]

        def read(start: int, stop: int) -> Block:
            with reading(self.source):
                found = []
                for number in range(int(np.searchsorted(self.episodes.stops, start, "right")), len(self._ids)):
                    begin, end = int(self.episodes.starts[number]), int(self.episodes.stops[number])
                    if begin >= stop:
                        break
                    found.append(_transitions(episode(number), max(start, begin) - begin, min(stop, end) - begin))
                parts = found[0] if len(found) == 1 else tuple(_concatenate(column) for column in zip(*found))
                observations, following, actions, rewards = parts
                return Block(observations, following, actions, rewards, *self.episodes.flags(start, stop))

        return read

    def close(self) -> None:
        """Do nothing: the library opens files when it reads them."""


def _flat(observations: Any) -> Parts:
    if not isinstance(observations, dict):
        return {NO_KEY: np.asarray(observations)}
    if any(not isinstance(part, np.ndarray) for part in observations.values()):
        raise ValueError("observations have keys below keys, or are tuples or texts")
    return observations


def _transitions(found: dict[str, Any], start: int, stop: int) -> tuple[Any, ...]:
    parts = _flat(found["observations"])
    if not isinstance(found["actions"], np.ndarray):
        raise ValueError("actions are dictionaries, tuples or texts")
    current = {key: part[start:stop] for key, part in parts.items()}
    following = {key: part[start + 1 : stop + 1] for key, part in parts.items()}
    return current, following, found["actions"][start:stop], np.asarray(found["rewards"])[start:stop]


def _concatenate(column: tuple[Any, ...]) -> Any:
    if isinstance(column[0], dict):
        return {key: np.concatenate([part[key] for part in column]) for key in column[0]}
    return np.concatenate(column)


def open_minari_folder(path: Path) -> MinariDataset:
    """Open a folder of Minari.

    :param path: the folder of a data set, or the folder ``data`` in it
    """
    minari = require("minari", _FEATURE)
    with reading(str(path), "a data set of Minari"):
        return MinariDataset(str(path), minari.MinariDataset(path / "data" if (path / "data").is_dir() else path))


def load_minari(dataset_id: str) -> MinariDataset:
    """Open a data set of Minari by its id; it is downloaded if needed.

    :param dataset_id: the id, such as ``"D4RL/pen/human-v2"``
    """
    minari = require("minari", _FEATURE)
    try:
        found = minari.load_dataset(dataset_id, download=True)
    except Exception as error:  # of the library, of a server or of the network
        problem = " ".join(str(error).split())[:200] or type(error).__name__
        allowed = f"it is neither stored here nor could it be downloaded ({type(error).__name__}: {problem})"
        hint = "minari.list_local_datasets() and minari.list_remote_datasets() list the ids."
        raise ParameterError("open_dataset", "source", f"minari:{dataset_id}", allowed, hint) from error
    return MinariDataset(f"minari:{dataset_id}", found)


def write_minari(
    dataset: Dataset, dataset_id: str, spaces: tuple[Any, Any], about: Mapping[str, Any], progress: bool
) -> Path:
    """Write a data set of Minari, an episode at a time. Open episodes count as truncated.

    :param dataset: the data set
    :param dataset_id: the id, such as ``"doom/basic-v0"``
    :param spaces: the spaces of observations and actions
    :param about: metadata of the project
    :param progress: whether to show a progress bar
    """
    minari = require("minari", _FEATURE)
    try:
        require("minari.dataset.minari_dataset", _FEATURE).parse_dataset_id(dataset_id)
    except (TypeError, ValueError) as error:
        allowed = "it must be of the form (namespace/)name-v0, with a namespace of more than one letter"
        raise ParameterError("export_dataset", "target", f"minari:{dataset_id}", allowed) from error
    root = Path(require("minari.storage.datasets_root_dir", _FEATURE).get_dataset_path()).absolute()
    buffers = require("minari.data_collector.episode_buffer", _FEATURE)
    create, read = require("minari.dataset.minari_storage", _FEATURE).MinariStorage.new, dataset.reader()
    target = root / dataset_id
    _check_whole(dataset)
    with new_folder(target, "export_dataset", root) as draft, progress_bar("export", len(dataset), progress) as advance:
        storage = create(draft / "data", *spaces, data_format="hdf5", jpeg_encoding=False)
        for number, (start, stop) in enumerate(zip(dataset.episodes.starts.tolist(), dataset.episodes.stops.tolist())):
            block = read(start, stop)
            truncated = block.truncated.copy()
            truncated[-1] |= not block.terminated[-1]
            whole = {
                key: _check_chain(dataset, number, part, block.next_observations[key])
                for key, part in block.observations.items()
            }
            episode = {
                "observations": whole.get(NO_KEY, whole),
                "actions": block.actions.reshape(len(block), *spaces[1].shape),
                "rewards": block.rewards,
                "terminations": block.terminated,
                "truncations": truncated,
            }
            storage.update_episodes([buffers.EpisodeBuffer(id=number, **episode)])
            advance(len(block))
        units = {_UNITS: bool(about["in_environment_units"])}
        storage.update_metadata({**units, "dataset_id": dataset_id, "minari_version": minari.__version__})
    return target


def _check_whole(dataset: Dataset) -> None:
    if not len(dataset.episodes):
        raise FileContentError(dataset.source, "transitions", "none")


def _check_chain(dataset: Dataset, number: int, current: NDArray[Any], following: NDArray[Any]) -> NDArray[Any]:
    """All observations of an episode, or an error if a next observation is not the following one."""
    if current[1:].tobytes() != following[:-1].tobytes():
        found = f"other ones in episode {number}"
        hint = "Minari stores each observation once. Export to Parquet, Hugging Face or npz."
        raise FileContentError(dataset.source, "next observations that are the following observations", found, hint)
    return np.concatenate([current, following[-1:]])

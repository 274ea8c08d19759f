"""``write_minari``: a recording as a Minari dataset for offline reinforcement learning."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from sb3_extra_buffers.errors import BufferStateError, ParameterError
from sb3_extra_buffers.progress import Advance, progress_bar
from sb3_extra_buffers.recording.exports.batches import chosen_steps
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_folder
from sb3_extra_buffers.recording.exports.spaces import action_space_of, frame_space
from sb3_extra_buffers.recording.exports.transitions import Transitions, cut
from sb3_extra_buffers.recording.recording import Recording

_NAME = "to_minari"
_FORMATS = ("parquet", "arrow", "hdf5")


def write_minari(
    recording: Recording,
    dataset_id: str,
    *,
    terminal_frames: bool,
    folder: AnyPath | None = None,
    truncation_feature: int | None = None,
    action_space: Any = None,
    observation_space: Any = None,
    data_format: Literal["parquet", "arrow", "hdf5"] = "parquet",
    about: Mapping[str, Any] | None = None,
    progress: bool = True,
) -> Any:
    """
    Write a Minari dataset, losslessly, and open it. Needs the extra ``minari``.

    Minari would store images as JPEG; here they are stored as they are. Features become ``infos``. An episode is
    decoded as a whole, because that is how Minari writes it.

    :param recording: what to write
    :param dataset_id: its name for Minari, such as ``"doom/basic-v0"``
    :param terminal_frames: whether the last step of an episode that is done is nothing but its last frame, as
        ``RecordEnv``, ``VecRecord`` and ``RecordCallback`` record it. If it is a step as all others, with an action
        after which the episode was over, what came of that is not known: the last frame stands for it if the episode
        came to its end, where nobody asks for it; otherwise the step is left out
    :param folder: where to write it; ``None`` for where ``minari.load_dataset`` looks for it
    :param truncation_feature: number of the feature that says whether a step was cut off by a time limit; ``None`` if
        every episode that is done came to its end
    :param action_space: of the environment; ``None`` for the least one that holds all actions
    :param observation_space: of the frames; ``None`` for all values of their dtype
    :param data_format: how Minari stores it; ``"parquet"`` is compressed, the others are not
    :param about: more about the dataset, such as ``author``, ``algorithm_name`` or ``description``
    :param progress: whether to show a bar on a terminal, if rich or tqdm is installed
    """
    if data_format not in _FORMATS:
        raise ParameterError(_NAME, "data_format", data_format, f"it must be one of {', '.join(_FORMATS)}")
    steps = chosen_steps(recording, None, _NAME, frames=True)
    minari = require("minari", _NAME)
    for library in ("PIL", "h5py" if data_format == "hdf5" else "pyarrow"):
        require(library, _NAME)
    root, target = _place(dataset_id, folder)
    seen = frame_space(recording) if observation_space is None else observation_space
    done = action_space_of(recording) if action_space is None else action_space
    with new_folder(target, _NAME, root) as draft, progress_bar(_NAME, len(steps), progress) as advance:
        storage = _storage(draft / "data", seen, done, data_format)
        for number, episode in enumerate(_episodes(recording, terminal_frames, truncation_feature, advance)):
            storage.update_episodes([_buffer(number, episode)])
        if not storage.total_episodes:
            found = "no episode has an action with a frame before and after it"
            raise BufferStateError(type(recording).__name__, _NAME, found)
        storage.update_metadata(_about(dataset_id, minari.__version__, about))
    return minari.MinariDataset(target / "data")


def _place(dataset_id: str, folder: AnyPath | None) -> tuple[Path, Path]:
    """The folder of all datasets, and that of this one."""
    try:
        require("minari.dataset.minari_dataset", _NAME).parse_dataset_id(dataset_id)
    except (TypeError, ValueError) as error:
        allowed = "it must be of the form (namespace/)name-v0, with a namespace of more than one letter"
        raise ParameterError(_NAME, "dataset_id", dataset_id, allowed) from error
    usual = require("minari.storage.datasets_root_dir", _NAME).get_dataset_path
    root = Path(usual() if folder is None else os.fspath(folder)).absolute()
    return root, root / dataset_id


def _storage(path: Path, observation_space: Any, action_space: Any, data_format: str) -> Any:
    new = require("minari.dataset.minari_storage", _NAME).MinariStorage.new
    return new(path, observation_space, action_space, data_format=data_format, jpeg_encoding=False)


def _episodes(
    recording: Recording, terminal_frames: bool, truncation_feature: int | None, advance: Advance
) -> Iterator[Transitions]:
    for steps in recording.episodes:
        found = cut(recording.read(steps.start, steps.stop), terminal_frames, truncation_feature, _NAME)
        if len(found.rewards):
            yield found
        advance(len(steps))


def _buffer(number: int, episode: Transitions) -> Any:
    buffers = require("minari.data_collector.episode_buffer", _NAME)
    return buffers.EpisodeBuffer(
        id=number,
        observations=episode.observations,
        actions=episode.actions,
        rewards=episode.rewards,
        terminations=episode.terminations,
        truncations=episode.truncations,
        infos=episode.infos or None,
    )


def _about(dataset_id: str, version: str, about: Mapping[str, Any] | None) -> dict[str, Any]:
    said = dict(about or {})
    for name in ("author", "author_email"):
        if isinstance(said.get(name), str):
            said[name] = {said[name]}
    return {**said, "dataset_id": dataset_id, "minari_version": version}

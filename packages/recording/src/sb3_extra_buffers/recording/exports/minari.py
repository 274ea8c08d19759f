"""``write_minari``: a recording as a Minari dataset for offline reinforcement learning."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import BufferStateError, ObservationError, ParameterError
from sb3_extra_buffers.progress import Advance, progress_bar
from sb3_extra_buffers.recording.exports.batches import select_steps
from sb3_extra_buffers.recording.exports.extras import require
from sb3_extra_buffers.recording.exports.files import AnyPath, new_folder
from sb3_extra_buffers.recording.exports.parquet import feature_columns
from sb3_extra_buffers.recording.protocol import Clip, Recording

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

    Images are stored unchanged; Minari's default would be JPEG. Features become ``infos``. Each episode is decoded as a
    whole, because Minari writes whole episodes.

    :param recording: the recording
    :param dataset_id: id of the dataset, such as ``"doom/basic-v0"``
    :param terminal_frames: whether the last step of a finished episode only holds its last frame, as ``RecordEnv``,
        ``VecRecord`` and ``RecordCallback`` record it. Otherwise the frame after the last action is unknown: if the
        episode was terminated, the last frame is repeated, because learning does not use it; else the step is left out
    :param folder: folder of the datasets; ``None`` for the folder of ``minari.load_dataset``
    :param truncation_feature: number of the feature that is true if the episode was truncated; ``None`` if every
        finished episode was terminated
    :param action_space: of the environment; ``None`` for the smallest space that contains all actions
    :param observation_space: of the frames; ``None`` for all values of their dtype
    :param data_format: format of the dataset; only ``"parquet"`` is compressed
    :param about: other metadata of the dataset, such as ``author``, ``algorithm_name`` or ``description``
    :param progress: whether to show a progress bar on a terminal, if rich or tqdm is installed
    """
    if data_format not in _FORMATS:
        raise ParameterError(_NAME, "data_format", data_format, f"it must be one of {', '.join(_FORMATS)}")
    steps = select_steps(recording, None, _NAME, frames=True)
    minari = require("minari", _NAME)
    for library in ("PIL", "h5py" if data_format == "hdf5" else "pyarrow"):
        require(library, _NAME)
    root, target = _folders(dataset_id, folder)
    observations = _observation_space(recording) if observation_space is None else observation_space
    actions = _action_space(recording) if action_space is None else action_space
    with new_folder(target, _NAME, root) as draft, progress_bar(_NAME, len(steps), progress) as advance:
        create = require("minari.dataset.minari_storage", _NAME).MinariStorage.new
        storage = create(draft / "data", observations, actions, data_format=data_format, jpeg_encoding=False)
        for number, episode in enumerate(_episodes(recording, terminal_frames, truncation_feature, advance)):
            storage.update_episodes([_episode_buffer(number, episode)])
        if not storage.total_episodes:
            found = "no episode has an action with a frame before and after it"
            raise BufferStateError(type(recording).__name__, _NAME, found)
        storage.update_metadata(_metadata(dataset_id, minari.__version__, about))
    return minari.MinariDataset(target / "data")


def _folders(dataset_id: str, folder: AnyPath | None) -> tuple[Path, Path]:
    """Return the folder of all datasets, and that of this one."""
    try:
        require("minari.dataset.minari_dataset", _NAME).parse_dataset_id(dataset_id)
    except (TypeError, ValueError) as error:
        allowed = "it must be of the form (namespace/)name-v0, with a namespace of more than one letter"
        raise ParameterError(_NAME, "dataset_id", dataset_id, allowed) from error
    default = require("minari.storage.datasets_root_dir", _NAME).get_dataset_path
    root = Path(default() if folder is None else os.fspath(folder)).absolute()
    return root, root / dataset_id


def _observation_space(recording: Recording) -> Any:
    spaces = require("gymnasium.spaces", _NAME)
    frames = recording.read(0, 1).frames
    assert frames is not None
    dtype = frames.dtype
    if dtype.kind == "b":
        hint = "Record frames as uint8, or pass an observation_space."
        raise ObservationError(_NAME, "a frame", "of bool", "numbers: Gymnasium has no space of bool", hint)
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else (-np.inf, np.inf)
    return spaces.Box(low, high, frames.shape[1:], dtype.type)


def _action_space(recording: Recording) -> Any:
    spaces = require("gymnasium.spaces", _NAME)
    actions = recording.without_frames().actions
    if actions.dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, actions.shape[1:], actions.dtype.type)
    least, greatest = actions.min(axis=0), actions.max(axis=0)
    if actions.ndim == 1:
        start = min(int(least), 0)
        return spaces.Discrete(int(greatest) - start + 1, start=start)
    return spaces.Box(least, greatest, actions.shape[1:], actions.dtype.type)


@dataclass(frozen=True)
class Transitions:
    """An episode of ``n`` actions and ``n + 1`` observations.

    :param observations: shape ``(n + 1, H, W, C)``
    :param actions: shape ``(n, ...)``
    :param rewards: shape ``(n,)``
    :param terminations: shape ``(n,)``: whether the episode was terminated
    :param truncations: shape ``(n,)``: whether the episode was truncated
    :param infos: shape ``(n + 1, 1)``: a value for each observation, by the name of the feature
    """

    observations: NDArray[Any]
    actions: NDArray[Any]
    rewards: NDArray[Any]
    terminations: NDArray[np.bool_]
    truncations: NDArray[np.bool_]
    infos: dict[str, NDArray[Any]]


def transitions_of(clip: Clip, terminal_frames: bool, truncation_feature: int | None) -> Transitions:
    """Convert the steps of an episode to transitions.

    :param clip: all steps of an episode
    :param terminal_frames: whether the last step of a finished episode only holds its last frame
    :param truncation_feature: number of the feature that is true if the episode was truncated
    """
    assert clip.frames is not None
    infos = dict(feature_columns(clip))
    is_done, is_truncated = bool(clip.dones[-1]), _is_truncated(infos, truncation_feature)
    observed = np.arange(len(clip))
    acted = observed[:-1]
    if is_done and not is_truncated and not terminal_frames:
        acted, observed = observed, np.append(observed, observed[-1])
    terminations = np.zeros(len(acted), np.bool_)
    # Minari has no unfinished episodes, so they count as truncated.
    terminations[-1:] = is_done and not is_truncated
    truncations = np.zeros(len(acted), np.bool_)
    truncations[-1:] = not is_done or is_truncated
    return Transitions(
        np.ascontiguousarray(clip.frames[observed]),
        clip.actions[acted],
        clip.rewards[acted],
        terminations,
        truncations,
        # With a second axis: Minari 0.5.4 cannot read infos of one axis that it wrote.
        {name: np.ascontiguousarray(values[observed, np.newaxis]) for name, values in infos.items()},
    )


def _is_truncated(infos: dict[str, NDArray[Any]], truncation_feature: int | None) -> bool:
    if truncation_feature is None:
        return False
    name = f"feature_{truncation_feature}"
    if name not in infos:
        allowed = f"steps have {len(infos)} features" if infos else "steps have no features"
        raise ParameterError(_NAME, "truncation_feature", truncation_feature, allowed)
    return bool(infos[name][-1])


def _episodes(
    recording: Recording, terminal_frames: bool, truncation_feature: int | None, advance: Advance
) -> Iterator[Transitions]:
    for steps in recording.episodes:
        found = transitions_of(recording.read(steps.start, steps.stop), terminal_frames, truncation_feature)
        if len(found.rewards):
            yield found
        advance(len(steps))


def _episode_buffer(number: int, episode: Transitions) -> Any:
    buffers = require("minari.data_collector.episode_buffer", _NAME)
    return buffers.EpisodeBuffer(id=number, **{**vars(episode), "infos": episode.infos or None})


def _metadata(dataset_id: str, version: str, about: Mapping[str, Any] | None) -> dict[str, Any]:
    values = dict(about or {})
    for name in ("author", "author_email"):
        if isinstance(values.get(name), str):
            values[name] = {values[name]}
    return {**values, "dataset_id": dataset_id, "minari_version": version}

"""``Stream``: transitions to try storage on, read from a recording or from arrays by ``read``."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first

from sb3_extra_buffers.checkpoints import open_arrays
from sb3_extra_buffers.codecs import CellSpec
from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.errors import FileContentError, FileMissingError, ParameterError
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.recording import load
from sb3_extra_buffers.training_utils.steps import Step

#: A shorter stream says nothing about memory.
MIN_STEPS = 64
#: The key of a space without keys.
NO_KEY = ""
#: Names of arrays of observations in files, in the order in which they are looked for.
_OBSERVATIONS = ("observations", "obs", "frames", "arr_0")
_DONES = ("dones", "terminals", "episode_ends")
#: Files of numpy, and their first bytes.
_MAGIC = {".npz": b"PK", ".npy": b"\x93NUMPY"}


@dataclass(frozen=True)
class Stream:
    """Steps of environments, in order.

    :param label: where they come from
    :param observation_space: as a buffer of Stable-Baselines3 gets it: images channels first
    :param action_space: of the environments
    :param n_envs: number of environments
    :param steps: the steps
    """

    label: str
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    n_envs: int
    steps: list[Step]

    def __post_init__(self) -> None:
        if len(self.steps) < MIN_STEPS:
            hint = "Play, or record, for longer."
            raise ParameterError("advise", "steps", len(self.steps), f"it takes {MIN_STEPS} to judge by", hint)

    @property
    def spaces(self) -> dict[str, spaces.Space[Any]]:
        """The observation space of each key; a space without keys has the key ``""``."""
        return parts_of(self.observation_space)

    @property
    def transitions(self) -> int:
        """Steps of all environments together."""
        return len(self.steps) * self.n_envs

    def rows(self, key: str, count: int) -> Bytes:
        """Observations of a key, evenly from the whole stream, as rows of bytes."""
        every = max(1, len(self.steps) // count)
        dtype = self.spaces[key].dtype
        found = [
            np.asarray((step.observations if key == NO_KEY else step.observations[key])[0], dtype)
            for step in self.steps[::every][:count]
        ]
        return np.ascontiguousarray(np.stack(found)).reshape(len(found), -1).view(np.uint8)

    def plain_buffer(self, size: int) -> ReplayBuffer:
        """Make a buffer of Stable-Baselines3 for this number of transitions."""
        return self.plain_class(size, self.observation_space, self.action_space, "cpu", self.n_envs)

    @property
    def plain_class(self) -> type[ReplayBuffer]:
        """The buffer class of Stable-Baselines3."""
        return DictReplayBuffer if isinstance(self.observation_space, spaces.Dict) else ReplayBuffer

    @property
    def buffer_class(self) -> type[CompressedReplayBuffer]:
        """The compressed buffer class."""
        is_dict = isinstance(self.observation_space, spaces.Dict)
        return CompressedDictReplayBuffer if is_dict else CompressedReplayBuffer

    def compressed_buffer(self, size: int, options: Mapping[str, Any]) -> CompressedReplayBuffer:
        """Make a compressed buffer for this number of transitions, with options of storage."""
        return self.buffer_class(size, self.observation_space, self.action_space, "cpu", self.n_envs, **options)


def parts_of(space: spaces.Space[Any]) -> dict[str, spaces.Space[Any]]:
    """The space of each key; a space without keys has the key ``""``."""
    return dict(space.spaces) if isinstance(space, spaces.Dict) else {NO_KEY: space}


def cell_of(space: spaces.Space[Any]) -> CellSpec:
    """An observation of a space without keys."""
    return CellSpec(np.dtype(space.dtype), max(1, int(np.prod(space.shape or 1))))


def has_channels_last(space: spaces.Space[Any]) -> bool:
    """Whether Stable-Baselines3 transposes images of this space, by VecTransposeImage."""
    return isinstance(space, spaces.Box) and is_image_space(space) and not is_image_space_channels_first(space)


def feed(buffer: ReplayBuffer, steps: list[Step]) -> None:
    """Add steps to a buffer."""
    for step in steps:
        step.add_to(buffer)


def read(path: Path, steps: int | None = None) -> Stream:
    """Read observations as the stream of one environment, without actions and rewards.

    :param path: a recording, or an ``.npz`` or ``.npy`` file; in an archive, the array is called ``observations``,
        ``obs`` or ``frames``, and ``dones`` may mark the last observations of episodes
    :param steps: number of transitions to read; ``None`` reads all
    """
    if steps is not None and steps < MIN_STEPS:
        raise ParameterError("advise", "steps", steps, f"it takes {MIN_STEPS} to judge by", "Read more of the file.")
    if not path.exists():
        raise FileMissingError(str(path))
    observations, dones = _arrays(path, steps) if path.suffix in _MAGIC else _recorded(path, steps)
    count = len(observations)
    if observations.dtype.kind not in "buif" or observations.ndim < 2:
        found = f"an array of {observations.dtype} with shape {observations.shape}"
        raise FileContentError(str(path), "observations in order", found, "The first axis counts the observations.")
    if count <= MIN_STEPS:
        expected = f"more than {MIN_STEPS} observations"
        raise FileContentError(str(path), expected, f"{count} of them", "Record for longer.")
    if has_channels_last(_space(observations)):
        observations = np.moveaxis(observations, -1, 1)
    transitions = _steps(observations, dones)
    if len(transitions) < MIN_STEPS:
        found = f"{len(transitions)} of them" if transitions else "that no two observations belong to one episode"
        hint = f"{_DONES[0]!r} is true where an episode ends; leave it out, or record for longer."
        raise FileContentError(str(path), f"{MIN_STEPS} transitions within episodes", found, hint)
    return Stream(path.name, _space(observations), spaces.Discrete(2), 1, transitions)


def _steps(observations: NDArray[Any], dones: NDArray[np.bool_]) -> list[Step]:
    """Transitions from each observation to the next one of its episode."""
    found, action, reward = [], np.zeros((1, 1), np.int64), np.zeros(1, np.float32)
    for place in np.flatnonzero(~dones[:-1]).tolist():
        now, then = slice(place, place + 1), slice(place + 1, place + 2)
        # The last transition of an episode leads to its last observation.
        found.append(Step(observations[now], observations[then], action, action, reward, dones[then], [{}]))
    return found


def _count_needed(dones: NDArray[np.bool_], steps: int | None) -> int:
    """Number of observations that have so many transitions between them, within episodes."""
    places = np.flatnonzero(~dones[:-1])
    return len(dones) if steps is None or len(places) <= steps else int(places[steps - 1]) + 2


def _space(observations: NDArray[Any]) -> spaces.Box:
    dtype, low, high = observations.dtype, -np.inf, np.inf
    if dtype.kind != "f":
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return spaces.Box(low, high, observations.shape[1:], dtype.type)


def _arrays(path: Path, steps: int | None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    with path.open("rb") as file:
        begin = file.read(len(_MAGIC[path.suffix]))
    hint = "Make it by numpy.save() or numpy.savez(), of numbers."
    if begin != _MAGIC[path.suffix]:
        raise FileContentError(str(path), "arrays of numpy", f"something else: it begins with {begin!r}", hint)
    try:
        found, names = _loaded(path)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        problem = "content that numpy cannot read: it is damaged, or has arrays of objects"
        raise FileContentError(str(path), "arrays of numpy", problem, hint) from error
    chosen = next((name for name in _OBSERVATIONS if name in names), names[0] if len(names) == 1 else None)
    if chosen is None:
        hint = f"Call the array {_OBSERVATIONS[0]!r}."
        raise FileContentError(str(path), "an array of observations", ", ".join(names) or "nothing", hint)
    observations, marked = found[chosen], next((name for name in _DONES if name in names), None)
    if not observations.ndim:
        raise FileContentError(str(path), "observations in order", f"a single number under {chosen!r}")
    ends = np.zeros(len(observations)) if marked is None else found[marked]
    if ends.shape != (len(observations),):
        problem = f"{ends.shape} for {len(observations)} observations"
        raise FileContentError(str(path), f"{marked!r}, one for each observation", problem)
    dones = np.asarray(ends, np.bool_)
    needed = _count_needed(dones, steps)
    return observations[:needed], dones[:needed]


def _loaded(path: Path) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """The arrays that are used here, and the names of all."""
    if path.suffix == ".npy":
        return {_OBSERVATIONS[0]: np.load(path, mmap_mode="r")}, [_OBSERVATIONS[0]]
    # Opened here, because numpy does not close a file that is no archive.
    with path.open("rb") as file, np.load(file) as archive:
        names = list(archive)
        used = set(names) & {*_OBSERVATIONS, *_DONES} if len(names) > 1 else set(names)
        return {name: archive[name] for name in used}, names


def _recorded(path: Path, steps: int | None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    hint = "Give an environment, a recording, or an .npz or .npy file of observations."
    if path.is_dir():
        raise FileContentError(str(path), "observations", "a folder", hint)
    with open_arrays(path) as file:
        if file.kind != "recording":
            raise FileContentError(str(path), "observations", f"a {file.kind}", hint)
    with load(path) as recording:
        if not recording.frame_shape or not len(recording):
            raise FileContentError(str(path), "frames", "a recording without any", "Record with RecordBuffer.")
        clip = recording[: _count_needed(np.asarray(recording.dones, np.bool_), steps)]
        frames = clip.frames
        assert frames is not None
        return np.asarray(frames), np.asarray(clip.dones, np.bool_)

"""``read``: the stream of a recording, or of arrays of observations."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first

from sb3_extra_buffers.advisor.stream import MIN_STEPS, Stream
from sb3_extra_buffers.checkpoints import open_arrays
from sb3_extra_buffers.errors import FileContentError, FileMissingError, MissingExtraError, ParameterError
from sb3_extra_buffers.training_utils.steps import Step

#: What arrays of observations are called in files, in the order in which they are looked for.
_OBSERVATIONS = ("observations", "obs", "frames", "arr_0")
_ENDS = ("dones", "terminals", "episode_ends")
#: Files of numpy, and how they begin.
_BEGINNINGS = {".npz": b"PK", ".npy": b"\x93NUMPY"}


def read(path: Path, steps: int | None = None) -> Stream:
    """
    Observations, in order, as one environment would show them. What was done there, and its reward, is left out.

    :param path: a recording, or an ``.npz`` or ``.npy`` file; in an archive, the array is called ``observations``,
        ``obs`` or ``frames``, and ``dones`` may tell where episodes end
    :param steps: how many transitions are needed; ``None`` reads all
    """
    if steps is not None and steps < MIN_STEPS:
        raise ParameterError("advise", "steps", steps, f"it takes {MIN_STEPS} to judge by", "Read more of the file.")
    if not path.exists():
        raise FileMissingError(str(path))
    observations, dones = _arrays(path, steps) if path.suffix in _BEGINNINGS else _recorded(path, steps)
    if observations.dtype.kind not in "buif" or observations.ndim < 2:
        found = f"an array of {observations.dtype} with shape {observations.shape}"
        hint = "The first axis counts the observations."
        raise FileContentError(str(path), "observations in order", found, hint)
    if len(observations) <= MIN_STEPS:
        hint = "Record for longer."
        raise FileContentError(str(path), f"more than {MIN_STEPS} observations", f"{len(observations)} of them", hint)
    space = _space(observations)
    if is_image_space(space) and not is_image_space_channels_first(space):  # as VecTransposeImage does
        observations = np.moveaxis(observations, -1, 1)
        space = _space(observations)
    transitions = _steps(observations, dones)
    if len(transitions) < MIN_STEPS:
        told = f"{len(transitions)} of them" if transitions else "that no two observations belong to one episode"
        hint = f"{_ENDS[0]!r} is true where an episode ends; leave it out, or record for longer."
        raise FileContentError(str(path), f"{MIN_STEPS} transitions within episodes", told, hint)
    return Stream(path.name, space, spaces.Discrete(2), 1, transitions)


def _steps(observations: NDArray[Any], dones: NDArray[np.bool_]) -> list[Step]:
    """Transitions from each observation to the next one of its episode."""
    found, action, reward = [], np.zeros((1, 1), np.int64), np.zeros(1, np.float32)
    ends = dones.copy()
    ends[:-1] |= dones[1:]  # the last transition of an episode is the one to its last observation
    for place in np.flatnonzero(~dones[:-1]).tolist():
        before, after = observations[place : place + 1], observations[place + 1 : place + 2]
        found.append(Step(before, after, action, action, reward, ends[place : place + 1], [{}]))
    return found


def _needed(dones: NDArray[np.bool_], steps: int | None) -> int:
    """How many observations have so many transitions between them: none leads from one episode into the next."""
    places = np.flatnonzero(~dones[:-1])
    return len(dones) if steps is None or len(places) <= steps else int(places[steps - 1]) + 2


def _space(observations: NDArray[Any]) -> spaces.Box:
    dtype, shape = observations.dtype, observations.shape[1:]
    if dtype.kind == "f":
        return spaces.Box(-np.inf, np.inf, shape, dtype.type)
    if dtype.kind == "b":
        return spaces.Box(0, 1, shape, np.bool_)  # type: ignore[arg-type]  # that it takes integers too, its types forget
    limits = np.iinfo(dtype)
    return spaces.Box(limits.min, limits.max, shape, dtype.type)


def _arrays(path: Path, steps: int | None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    with path.open("rb") as file:
        begin = file.read(len(_BEGINNINGS[path.suffix]))
    hint = "Make it by numpy.save() or numpy.savez(), of numbers."
    if begin != _BEGINNINGS[path.suffix]:
        raise FileContentError(str(path), "arrays of numpy", f"something else: it begins with {begin!r}", hint)
    try:
        found, names = _loaded(path)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        problem = "what numpy cannot read: it is damaged, or its arrays are of objects"
        raise FileContentError(str(path), "arrays of numpy", problem, hint) from error
    chosen = next((name for name in _OBSERVATIONS if name in names), names[0] if len(names) == 1 else None)
    if chosen is None:
        hint = f"Call the array {_OBSERVATIONS[0]!r}."
        raise FileContentError(str(path), "an array of observations", ", ".join(names) or "nothing", hint)
    if not found[chosen].ndim:
        raise FileContentError(str(path), "observations in order", f"a single number under {chosen!r}")
    observations = found[chosen]
    marked = next((name for name in _ENDS if name in names), None)
    ends = np.zeros(len(observations)) if marked is None else found[marked]
    if ends.shape != (len(observations),):
        problem = f"{ends.shape} for {len(observations)} observations"
        raise FileContentError(str(path), f"{marked!r}, one for each observation", problem)
    dones = np.asarray(ends, np.bool_)
    needed = _needed(dones, steps)
    return observations[:needed], dones[:needed]


def _loaded(path: Path) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """The arrays of interest, and the names of all."""
    if path.suffix == ".npy":
        return {_OBSERVATIONS[0]: np.load(path, mmap_mode="r")}, [_OBSERVATIONS[0]]
    # Opened here, because numpy leaves a file open that is no archive.
    with path.open("rb") as file, np.load(file) as archive:
        names = list(archive)
        interesting = set(names) & {*_OBSERVATIONS, *_ENDS} if len(names) > 1 else set(names)
        return {name: archive[name] for name in interesting}, names


def _recorded(path: Path, steps: int | None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    hint = "Give an environment, a recording, or an .npz or .npy file of observations."
    if path.is_dir():
        raise FileContentError(str(path), "observations", "a folder", hint)
    with open_arrays(path) as file:
        if file.kind != "recording":
            raise FileContentError(str(path), "observations", f"a {file.kind}", hint)
    try:
        from sb3_extra_buffers.recording import load
    except ImportError as error:
        raise MissingExtraError("Reading a recording", "sb3-extra-buffers-recording", "recording") from error
    with load(path) as recording:
        if not recording.frame_shape or not len(recording):
            raise FileContentError(str(path), "frames", "a recording without any", "Record with RecordBuffer.")
        clip = recording[: _needed(np.asarray(recording.dones, np.bool_), steps)]
        frames = clip.frames
        assert frames is not None
        return np.asarray(frames), np.asarray(clip.dones, np.bool_)

"""``import_dataset`` and ``export_dataset``: from data sets to replay buffers, and back."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.datasets.arrays import write_npz
from sb3_extra_buffers.datasets.arrow import write_hugging_face, write_parquet
from sb3_extra_buffers.datasets.minari import write_minari
from sb3_extra_buffers.datasets.protocol import NO_KEY, Block, Dataset, Reader, merged, rows_per_block
from sb3_extra_buffers.datasets.sources import open_dataset
from sb3_extra_buffers.datasets.spaces import Fitting, needs_scaling, space_to_json, spaces_of
from sb3_extra_buffers.datasets.table import FORMAT_VERSION
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.progress import progress_bar


@dataclass(frozen=True)
class Imported:
    """What :func:`import_dataset` has stored.

    :param transitions: number of transitions stored
    :param episodes: number of episodes they belong to
    :param left_out: transitions at the end that did not fill a step of all environments
    """

    transitions: int
    episodes: int
    left_out: int


def import_dataset(
    source: Any,
    buffer: Any,
    *,
    limit: int | None = None,
    scale_actions: bool | None = None,
    verify: bool = True,
    progress: bool = True,
    **options: Any,
) -> Imported:
    """
    Add the transitions of a data set to a replay buffer, without loading the data set.

    A buffer of several environments gets whole episodes, each in the first environment that is free. Episodes that are
    open and followed by another one count as truncated.

    :param source: see :func:`open_dataset`
    :param buffer: a replay buffer of Stable-Baselines3, or one that is used like it
    :param limit: largest number of transitions to store; ``None`` for all
    :param scale_actions: whether to scale actions from the range of the action space to the range from -1 to 1, as
        SAC, TD3 and DDPG store them; ``None``: if the data set has actions of an environment, and the space is another
    :param verify: whether to read and check everything before the first transition is stored, so that an error leaves
        the buffer unchanged; otherwise transitions before the error stay
    :param progress: whether to show a progress bar on a terminal, if rich or tqdm is installed
    :param options: arguments of :func:`open_dataset`
    """
    dataset = open_dataset(source, **options)
    n_envs, room = buffer.n_envs, (buffer.buffer_size - buffer.size()) * buffer.n_envs
    if scale_actions is None:
        scale_actions = dataset.in_environment_units and needs_scaling(buffer.action_space)
    fitting = Fitting(dataset.source, buffer.observation_space, buffer.action_space, scale_actions)
    fitting.check_spaces(dataset.observation_space, dataset.action_space)
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < n_envs):
        raise ParameterError("import_dataset", "limit", limit, f"it must be an integer of at least {n_envs}")
    lanes, steps = _lanes(dataset, n_envs)
    if not steps:
        allowed = f"{dataset.source} has {len(dataset.episodes)} episodes, too few for {n_envs} environments"
        raise ParameterError("import_dataset", "buffer.n_envs", n_envs, allowed, "Use n_envs=1.")
    steps = steps if limit is None else min(steps, limit // n_envs)
    if steps * n_envs > room:
        allowed = f"it has room for {room} of the {steps * n_envs} transitions of {dataset.source}"
        hint = "Make a larger buffer, or give a limit."
        raise ParameterError("import_dataset", "buffer", type(buffer).__name__, allowed, hint)
    with progress_bar("import", (steps + (steps if verify else 0)) * n_envs, progress) as advance:
        for is_check in (True, False) if verify else (False,):
            for blocks in _steps(dataset, lanes, steps):
                fitted = [fitting.fit(block) for block in blocks]
                if not is_check:
                    _add(buffer, fitted)
                advance(len(fitted[0]) * n_envs)
    ends = [lane.ends for lane in lanes]
    count = sum(int(np.searchsorted(end, steps)) + 1 for end in ends)
    return Imported(steps * n_envs, min(count, len(dataset.episodes)), len(dataset) - steps * n_envs)


@dataclass(frozen=True)
class _Lane:
    """The episodes of one environment of the buffer, and the end of each in its steps."""

    episodes: NDArray[np.int64]
    ends: NDArray[np.int64]


def _lanes(dataset: Dataset, n_envs: int) -> tuple[list[_Lane], int]:
    """Give each episode to the environment that is free first. Returns also the number of complete steps."""
    lengths = dataset.episodes.lengths
    if n_envs == 1:
        return [_Lane(np.arange(len(lengths)), np.cumsum(lengths))], int(lengths.sum())
    free = [(0, env) for env in range(n_envs)]
    given: list[list[int]] = [[] for _ in range(n_envs)]
    for number, length in enumerate(lengths.tolist()):
        taken, env = heapq.heappop(free)
        given[env].append(number)
        heapq.heappush(free, (taken + length, env))
    lanes = [_Lane(np.array(numbers, np.int64), np.cumsum(lengths[numbers])) for numbers in given]
    return lanes, min(taken for taken, _ in free)


def _steps(dataset: Dataset, lanes: list[_Lane], steps: int) -> Iterator[list[Block]]:
    """Iterate over the rows of all environments, in blocks of the same number of steps."""
    readers = [dataset.reader() for _ in lanes]
    first = int(dataset.episodes.starts[0])
    size = rows_per_block(readers[0](first, first + 1), len(lanes))
    for start in range(0, steps, size):
        stop = min(start + size, steps)
        yield [_lane_block(dataset, lane, read, start, stop, steps) for lane, read in zip(lanes, readers)]


def _lane_block(dataset: Dataset, lane: _Lane, read: Reader, start: int, stop: int, steps: int) -> Block:
    episodes = dataset.episodes
    numbers = lane.episodes[np.searchsorted(lane.ends, start, "right") : np.searchsorted(lane.ends, stop) + 1]
    ends = lane.ends[np.searchsorted(lane.ends, start, "right") : np.searchsorted(lane.ends, stop) + 1]
    begins = ends - episodes.lengths[numbers]
    firsts = episodes.starts[numbers] + np.maximum(start - begins, 0)
    lasts = episodes.stops[numbers] - np.maximum(ends - stop, 0)
    found = [read(*rows) for rows in merged(firsts, lasts)]
    block = found[0] if len(found) == 1 else _joined(found)
    # An open episode is followed by another one here.
    is_open = ~(episodes.terminated | episodes.truncated)[numbers] & (ends <= stop) & (ends < steps)
    block.truncated[ends[is_open] - 1 - start] = True
    return block


def _joined(blocks: list[Block]) -> Block:
    def join(name: str) -> Any:
        parts = [getattr(block, name) for block in blocks]
        if isinstance(parts[0], dict):
            return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        return np.concatenate(parts)

    return Block(*(join(name) for name in Block.__dataclass_fields__))


def _add(buffer: Any, blocks: list[Block]) -> None:
    """Add the steps of all environments, one after the other."""

    def stacked(name: str) -> Any:
        parts = [getattr(block, name) for block in blocks]
        if isinstance(parts[0], dict):
            return {key: np.stack([part[key] for part in parts], axis=1) for key in parts[0]}
        return np.stack(parts, axis=1)

    obs, next_obs = stacked("observations"), stacked("next_observations")
    actions, rewards, terminated = stacked("actions"), stacked("rewards"), stacked("terminated")
    timeouts = stacked("truncated") & ~terminated
    dones = terminated | timeouts
    infos: list[dict[str, Any]] = [{} for _ in blocks]
    has_timeout = timeouts.any(axis=1)
    for step in range(len(rewards)):
        current, following = (
            parts[NO_KEY][step] if NO_KEY in parts else {key: part[step] for key, part in parts.items()}
            for parts in (obs, next_obs)
        )
        given = infos
        if has_timeout[step]:
            given = [{"TimeLimit.truncated": bool(flag)} for flag in timeouts[step]]
        buffer.add(current, following, actions[step], rewards[step], dones[step], given)


def export_dataset(source: Any, target: str | Path, *, progress: bool = True, **options: Any) -> Path:
    """
    Write a replay buffer, or any other data set, to a file or folder that appears when it is complete.

    :param source: see :func:`open_dataset`
    :param target: a path that ends in ``.parquet`` or ``.npz``; ``"minari:ID"``; or ``"hf:FOLDER"`` for a folder of
        Hugging Face ``datasets``
    :param progress: whether to show a progress bar on a terminal, if rich or tqdm is installed
    :param options: arguments of :func:`open_dataset`
    """
    name = str(target)
    scheme, _, rest = name.partition(":")
    suffix = Path(name).suffix.lower()
    if scheme not in ("minari", "hf") and suffix not in (".parquet", ".npz"):
        allowed = "it must end in .parquet or .npz, or be minari:ID or hf:FOLDER"
        raise ParameterError("export_dataset", "target", name, allowed)
    dataset = open_dataset(source, **options)
    spaces = spaces_of(dataset)
    about = {
        "version": FORMAT_VERSION,
        "in_environment_units": dataset.in_environment_units,
        "observation_space": space_to_json(spaces[0]),
        "action_space": space_to_json(spaces[1]),
    }
    if scheme == "minari":
        return write_minari(dataset, rest, spaces, about, progress)
    if scheme == "hf":
        return write_hugging_face(dataset, rest, about, progress)
    return (write_parquet if suffix == ".parquet" else write_npz)(dataset, name, about, progress)

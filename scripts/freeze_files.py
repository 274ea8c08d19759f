"""Freeze files that every later version must be able to read: ``python -m scripts.freeze_files --replace``.

Small checkpoints of buffers and a recording, made with built-in codecs only, each beside an ``.npz`` of what must be
found in it. That comes from Stable-Baselines3's own buffers, which are fed the same, and from the steps themselves. Run
it when there is a new kind of file or a format changes on purpose, and commit what it writes; tests never write it.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer, RolloutBuffer

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer, CompressedRolloutBuffer
from sb3_extra_buffers.recording import RecordBuffer

_ROOT = Path(__file__).resolve().parents[1]
CHECKPOINTS = _ROOT / "packages" / "core" / "tests" / "compressed" / "golden"
RECORDINGS = _ROOT / "packages" / "recording" / "tests" / "golden"
SIDE, ENVS, ROWS, STEPS, BATCH = 16, 2, 20, 33, 16
IMAGE, ACTIONS = spaces.Box(0, 255, (4, SIDE, SIDE), np.uint8), spaces.Discrete(5)
DICT = spaces.Dict({"image": IMAGE, "scan": spaces.Box(-9, 9, (7,), np.float32), "lamp": spaces.Discrete(3)})
#: Replay buffers by name.
REPLAY: dict[str, dict[str, Any]] = {
    "frames": {"layout": "frames", "compression_method": "none"},
    "frames-gzip": {"layout": "frames", "compression_method": "gzip"},
    "cells-gzip": {"layout": "cells", "compression_method": "gzip"},
    "cells-rle-ring": {
        "layout": "cells",
        "compression_method": "rle",
        "heap": "ring",
        "heap_kwargs": {"capacity": 7000},
    },
    "cells-optimized": {
        "layout": "cells",
        "compression_method": "gzip",
        "optimize_memory_usage": True,
        "handle_timeout_termination": False,
    },
    # What is chosen for noise: no codec, so that whoever reads it needs none; and before anything is chosen.
    "auto-cells": {},
    "undecided": {},
}
_UNDECIDED_STEPS = 6
Step = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], list[dict[str, Any]]]


def film(count: int) -> Iterator[Step]:
    """Steps of stacked images in which a square moves over a pattern; episodes end, some of them by a time limit."""
    rng = np.random.default_rng(7)
    scene = np.tile(np.arange(SIDE, dtype=np.uint8) // 4 * 40, (SIDE, 1))
    stacks = np.zeros((ENVS, 4, SIDE, SIDE), np.uint8)

    def shift(env: int) -> None:
        frame = scene.copy()
        row, column = rng.integers(0, SIDE - 3, 2)
        frame[row : row + 3, column : column + 3] = rng.integers(1, 256)
        stacks[env] = np.concatenate([stacks[env, 1:], frame[np.newaxis]])

    for env in range(ENVS):
        shift(env)
    for number in range(count):
        before = stacks.copy()
        for env in range(ENVS):
            shift(env)
        dones = np.array([(number + 3 * env) % 9 == 8 for env in range(ENVS)])
        infos = [{"TimeLimit.truncated": bool(done) and number % 2 == 0} for done in dones]
        yield before, stacks.copy(), rng.integers(0, 5, (ENVS, 1)), rng.normal(size=ENVS), dones, infos
        for env in np.flatnonzero(dones).tolist():
            stacks[env] = 0
            shift(env)


def as_dict(images: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """The same as an observation of several parts."""
    sums = images.reshape(ENVS, -1).sum(axis=1, dtype=np.int64)
    scans = np.sin(sums[:, np.newaxis] + np.arange(7)).astype(np.float32)
    return {"image": images, "scan": scans, "lamp": (sums % 3)[:, np.newaxis]}


def as_noise(images: NDArray[Any]) -> NDArray[Any]:
    """Others for each observation, the same for equal ones."""
    found = [np.random.default_rng(int.from_bytes(image.tobytes()[::7], "little")) for image in images]
    return np.stack([rng.integers(0, 256, IMAGE.shape, np.uint8) for rng in found])


def flat(name: str, value: Any) -> dict[str, NDArray[Any]]:
    """Numbers by name, whatever they were handed out in."""
    if isinstance(value, dict):
        return {f"{name}/{key}": np.asarray(part) for key, part in value.items()}
    return {name: value.numpy() if isinstance(value, th.Tensor) else np.asarray(value)}


def batch_of(batch: Any) -> dict[str, NDArray[Any]]:
    """A batch, part by part."""
    found: dict[str, NDArray[Any]] = {}
    for field in batch._fields:
        if getattr(batch, field) is not None:
            found |= flat(f"batch/{field}", getattr(batch, field))
    return found


def replay(
    ours: Any, theirs: Any, path: Path, view: Callable[[NDArray[Any]], Any] | None = None, steps: int = STEPS
) -> dict[str, NDArray[Any]]:
    """Feed both, save ours in two goes, and return what it must hold."""
    for number, (obs, following, *rest) in enumerate(film(steps)):
        for buffer in (ours, theirs):
            buffer.add(*(part if view is None else view(part) for part in (obs, following)), *rest)
        if number == steps // 2:
            ours.save(path)
    ours.save(path)
    kept = ours._kept_rows()
    rows = (theirs.pos - kept + np.arange(kept)) % theirs.buffer_size
    expected = {"pos": np.array(theirs.pos), "full": np.array(theirs.full), "kept": np.array(kept)}
    names = ["observations", "actions", "rewards", "dones", "timeouts"]
    for name in names + ([] if theirs.optimize_memory_usage else ["next_observations"]):
        value = getattr(theirs, name)
        parts = {key: part[rows] for key, part in value.items()} if isinstance(value, dict) else value[rows]
        expected |= flat(name, parts)
    np.random.seed(3)
    sampled = batch_of(ours.sample(BATCH))
    if kept == theirs.size():
        np.random.seed(3)
        same = batch_of(theirs.sample(BATCH))
        assert all(np.array_equal(sampled[name], same[name]) for name in same)
    return expected | sampled


def rollout(path: Path) -> dict[str, NDArray[Any]]:
    """Feed both rollout buffers, save ours, and return what it must hold."""
    arguments: dict[str, Any] = {"gae_lambda": 0.9, "gamma": 0.95, "n_envs": ENVS, "device": "cpu"}
    ours = CompressedRolloutBuffer(ROWS, IMAGE, ACTIONS, compression_method="gzip", **arguments)
    theirs = RolloutBuffer(ROWS, IMAGE, ACTIONS, **arguments)
    rng, starts = np.random.default_rng(1), np.ones(ENVS)
    for obs, _, action, reward, dones, _ in film(ROWS):
        values, chances = (th.tensor(rng.normal(size=ENVS), dtype=th.float32) for _ in range(2))
        for buffer in (ours, theirs):
            buffer.add(obs, action, reward, starts, values, chances)
        starts = dones.astype(np.float64)
    for buffer in (ours, theirs):
        buffer.compute_returns_and_advantage(th.zeros(ENVS), starts)
    ours.save(path)
    names = ("observations", "actions", "rewards", "episode_starts", "values", "log_probs", "advantages", "returns")
    expected = {name: np.array(getattr(theirs, name)) for name in names}
    np.random.seed(3)
    return expected | batch_of(next(iter(theirs.get(BATCH))))


def recording(path: Path) -> dict[str, NDArray[Any]]:
    """Record images, and return what the file must hold."""
    buffer = RecordBuffer((SIDE, SIDE), 1, 100)
    found: dict[str, list[Any]] = {"frames": [], "rewards": [], "actions": [], "dones": []}
    for obs, _, action, reward, dones, _ in film(STEPS):
        step = obs[0, -1][:, :, np.newaxis], float(np.float32(reward[0])), int(action[0, 0]), bool(dones[0])
        buffer.add(*step[:3], done=step[3])
        for name, value in zip(found, step):
            found[name].append(value)
    buffer.save(path, "gzip")
    # Rewards are kept with the precision of the default.
    return {name: np.array(values, np.float32 if name == "rewards" else None) for name, values in found.items()}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkpoints", type=Path, default=CHECKPOINTS, help="folder for those of buffers")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, help="folder for that of a recording")
    parser.add_argument("--replace", action="store_true", help="replace what is there: a change of format")
    given = parser.parse_args(arguments)
    for folder in (given.checkpoints, given.recordings):
        if folder.exists() and not given.replace:
            parser.error(f"{folder} exists; files that are frozen are replaced only with --replace")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    expected: dict[Path, dict[str, NDArray[Any]]] = {}
    shared: dict[str, Any] = {"device": "cpu", "n_envs": ENVS}
    for name, options in REPLAY.items():
        like = {key: options[key] for key in ("optimize_memory_usage", "handle_timeout_termination") if key in options}
        ours = CompressedReplayBuffer(ROWS * ENVS, IMAGE, ACTIONS, **shared, **options)
        theirs = ReplayBuffer(ROWS * ENVS, IMAGE, ACTIONS, **shared, **like)
        path = given.checkpoints / name
        view = as_noise if name in ("auto-cells", "undecided") else None
        expected[path] = replay(ours, theirs, path, view, _UNDECIDED_STEPS if name == "undecided" else STEPS)
    path = given.checkpoints / "dict"
    own = CompressedDictReplayBuffer(ROWS * ENVS, DICT, ACTIONS, **shared, compression_method="gzip")
    expected[path] = replay(own, DictReplayBuffer(ROWS * ENVS, DICT, ACTIONS, **shared), path, as_dict)
    path = given.checkpoints / "rollout"
    expected[path] = rollout(path)
    path = given.recordings / "recording.safetensors"
    expected[path] = recording(path)
    for path, arrays in expected.items():
        np.savez_compressed(path.with_suffix(".npz"), **arrays)  # type: ignore[arg-type]
        print(f"{path.relative_to(path.parents[1])}: {len(arrays)} arrays expected")


if __name__ == "__main__":
    main()

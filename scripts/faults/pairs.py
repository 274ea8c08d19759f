"""Buffers beside those of Stable-Baselines3: both get the same steps, and every row is compared."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common import buffers as sb3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from sb3_extra_buffers import compressed, heaps

ENVS, ROWS, ACTIONS = 2, 96, spaces.Discrete(3)
IMAGE, VECTOR = spaces.Box(0, 255, (4, 24, 24), np.uint8), spaces.Box(-1e9, 1e9, (80,), np.float32)
#: How many steps can be made: enough to go through a buffer several times.
STEPS = 220


@dataclass(frozen=True)
class Kind:
    """A way of storing.

    :param ours: the class to be tested
    :param theirs: the class of Stable-Baselines3 that it is compared with
    :param form: ``"image"``, ``"vector"``, ``"dict"`` or ``"goals"``
    :param options: of our class only
    :param both: of both classes
    """

    ours: type[Any]
    theirs: type[Any]
    form: str = "image"
    options: Mapping[str, Any] = field(default_factory=dict)
    both: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_rollout(self) -> bool:
        return issubclass(self.theirs, sb3.RolloutBuffer)

    @property
    def space(self) -> spaces.Space[Any]:
        if self.form == "dict":
            return spaces.Dict({"image": IMAGE, "vector": VECTOR})
        if self.form == "goals":
            return spaces.Dict({"observation": IMAGE, "achieved_goal": VECTOR, "desired_goal": VECTOR})
        return IMAGE if self.form == "image" else VECTOR

    def new(self, heap: Mapping[str, Any] | None = None) -> Any:
        """An empty buffer: ours on a heap, or that of Stable-Baselines3."""
        kind, options = (self.theirs, {}) if heap is None else (self.ours, {**self.options, **heap})
        options |= self.both
        if self.form == "goals":
            options["env"] = _idle_env()
        size = ROWS if self.is_rollout else ROWS * ENVS
        return kind(size, self.space, ACTIONS, device="cpu", n_envs=ENVS, **options)

    def add(self, buffer: Any, step: int) -> None:
        """Add a step by its number. A rollout that is complete is forgotten first."""
        if self.is_rollout and buffer.full:
            buffer.reset()
        self.arguments_to(buffer, step)()

    def arguments_to(self, buffer: Any, step: int) -> Any:
        """The call that adds a step, with arguments that are made before."""
        screens, vectors, actions, dones = _play()
        now = _observation(self.form, screens[0][step], vectors[step])
        after = _observation(self.form, screens[1][step], vectors[step + 1])
        reward = np.arange(ENVS, dtype=np.float32) + step
        if self.is_rollout:
            value, start = th.from_numpy(reward), dones[step - 1] if step else np.ones(ENVS, np.bool_)
            return lambda: buffer.add(now, actions[step], reward, start, value, value)
        infos = [{"TimeLimit.truncated": bool(done and step % 2)} for done in dones[step]]
        return lambda: buffer.add(now, after, actions[step], reward, dones[step], infos)

    def theirs_after(self, steps: int) -> Any:
        """Stable-Baselines3's buffer after so many steps."""
        buffer = self.new()
        for step in range(steps):
            self.add(buffer, step)
        return buffer


_REPLAY = (compressed.CompressedReplayBuffer, sb3.ReplayBuffer)
_DICT = (compressed.CompressedDictReplayBuffer, sb3.DictReplayBuffer)
_FRAMES, _CELLS, _RAW = (
    {"layout": "frames"},
    {"layout": "cells", "compression_method": "gzip/1"},
    {"compression_method": "none"},
)
_ONE = {"optimize_memory_usage": True, "handle_timeout_termination": False}
KINDS = {
    "frames": Kind(*_REPLAY, options=_FRAMES),
    "frames, every chunk compressed": Kind(*_REPLAY, options={**_FRAMES, "prefer": "memory"}),
    "automatic": Kind(*_REPLAY),
    "cells": Kind(*_REPLAY, options=_CELLS),
    "cells, automatic codec": Kind(*_REPLAY, "vector", {"layout": "cells"}),
    "raw": Kind(*_REPLAY, "vector", _RAW),
    "optimize_memory_usage, frames": Kind(*_REPLAY, options=_FRAMES, both=_ONE),
    "optimize_memory_usage, cells": Kind(*_REPLAY, options=_CELLS, both=_ONE),
    "Dict": Kind(*_DICT, "dict"),
    "Dict, cells": Kind(*_DICT, "dict", _CELLS),
    "n-step": Kind(compressed.CompressedNStepReplayBuffer, sb3.NStepReplayBuffer, options=_FRAMES),
    "HER": Kind(compressed.CompressedHerReplayBuffer, HerReplayBuffer, "goals", both={"copy_info_dict": True}),
    "rollout, frames": Kind(compressed.CompressedRolloutBuffer, sb3.RolloutBuffer, options=_FRAMES),
    "rollout, cells": Kind(compressed.CompressedRolloutBuffer, sb3.RolloutBuffer, options=_CELLS),
    "rollout, Dict": Kind(compressed.CompressedDictRolloutBuffer, sb3.DictRolloutBuffer, "dict"),
}  # fmt: skip


def heaps_of(kind: Kind) -> dict[str, dict[str, Any]]:
    """The heaps that are installed, as arguments of a buffer: with room for everything, and where a heap evicts and a
    buffer allows it, with too little."""
    found: dict[str, dict[str, Any]] = {}
    for name in ("memory", "ring", "mmap"):
        if name not in heaps.registry.names():
            continue
        grows, large = heaps.registry.load(name).grows, {"heap": name, "heap_kwargs": {"capacity": 1 << 20}}
        found[name] = {"heap": name} if grows else large
        if not grows and not kind.is_rollout:
            full = kind.new(large)
            for step in range(ROWS):
                kind.add(full, step)
            held = full._storage.heap
            if np.count_nonzero(held.locate(np.arange(held.cells))[1]) >= 2 * ENVS:  # large chunks may not be complete
                found[f"{name}, evicting"] = {"heap": name, "heap_kwargs": {"capacity": held.live * 3 // 5}}
    return found


@dataclass
class Comparison:
    """What came of comparing two buffers.

    :param rows: how many rows were compared
    :param wrong: how many of them are not as in Stable-Baselines3's buffer
    :param kept: how many rows our buffer can sample
    """

    rows: int
    wrong: int
    kept: int


def compare(kind: Kind, ours: Any, theirs: Any) -> Comparison:
    """Compare every row that can be sampled."""
    if (ours.pos, ours.full) != (theirs.pos, theirs.full):
        return Comparison(ROWS, ROWS, 0)
    kept = ours.size() if kind.is_rollout else ours._whole_rows()
    rows = (ours.pos - kept + np.arange(kept)) % ROWS
    planes = {"observations": rows}
    if getattr(theirs, "optimize_memory_usage", False):
        planes["observations of the next row"] = (rows + 1) % ROWS
    elif not kind.is_rollout:
        planes["next_observations"] = rows
    same = np.ones(kept, np.bool_)
    if not kept:
        return Comparison(0, 0, 0)
    for name, places in planes.items():
        attribute = name.split()[0]
        same &= _same_rows(getattr(ours, attribute), getattr(theirs, attribute), places)
    for attribute in ("actions", "rewards", "dones", "timeouts", "episode_starts", "values", "log_probs"):
        if hasattr(theirs, attribute):
            same &= _same_rows(getattr(ours, attribute), getattr(theirs, attribute), rows)
    return Comparison(kept, int((~same).sum()), kept)


def samples_differ(kind: Kind, ours: Any, theirs: Any) -> bool:
    """Whether the same seed gives other samples. Rollouts must be complete; both buffers can still be added to."""
    if kind.is_rollout:
        if not theirs.full:
            return False
        ours, theirs = copy.deepcopy(ours), copy.deepcopy(theirs)
    if isinstance(theirs, HerReplayBuffer):
        books = ("ep_start", "ep_length", "_current_ep_start")
        if not all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in books):
            return True
        if not (theirs.ep_length > 0).any():
            return False
        if ours.infos.tolist() != theirs.infos.tolist():
            return True
    drawn = []
    for buffer in (ours, theirs):
        np.random.seed(7)
        drawn.append([*buffer.get(16)] if kind.is_rollout else [buffer.sample(32)])
    return not all(_same(one, other) for pair in zip(*drawn) for one, other in zip(*pair))


def _same(one: Any, other: Any) -> bool:
    if isinstance(other, dict):
        return all(_same(one[key], other[key]) for key in other)
    return one is other or th.equal(one, other)


def _same_rows(ours: Any, theirs: Any, rows: NDArray[Any]) -> NDArray[np.bool_]:
    if isinstance(theirs, dict):
        equal = np.stack([_same_rows(ours[key], part, rows) for key, part in theirs.items()], axis=1)
    else:
        equal = (ours[rows] == theirs[rows]).reshape(len(rows), -1)
    return np.asarray(equal.all(axis=1))


def _observation(form: str, image: NDArray[Any], vector: NDArray[Any]) -> Any:
    if form == "dict":
        return {"image": image, "vector": vector}
    if form == "goals":
        return {"observation": image, "achieved_goal": vector, "desired_goal": -vector}
    return image if form == "image" else vector


@lru_cache(maxsize=1)
def _play() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Stacks of four frames and those that follow them, vectors, actions, and ends of episodes; the same every time."""
    rng = np.random.default_rng(0)
    dones = rng.random((STEPS + 1, ENVS)) < 0.08
    stack, screens = np.zeros((ENVS, *IMAGE.shape), np.uint8), np.zeros((2, STEPS + 1, ENVS, *IMAGE.shape), np.uint8)
    for step in range(STEPS + 1):
        screens[0, step] = stack
        frame = np.zeros((ENVS, 24, 24), np.uint8)
        for env in range(ENVS):
            row, column = (step + 7 * env) % 20, (3 * step + env) % 20
            frame[env, row : row + 4, column : column + 4] = rng.integers(1, 200, (4, 4))
        stack = np.concatenate([stack[:, 1:], frame[:, np.newaxis]], axis=1)
        screens[1, step] = stack
        stack = stack.copy()
        stack[dones[step], :3] = 0
    vectors = rng.integers(0, 5, (STEPS + 2, ENVS, *VECTOR.shape)).astype(np.float32)
    return screens[:, :STEPS], vectors, rng.integers(0, 3, (STEPS, ENVS, 1)), dones[:STEPS]


@lru_cache(maxsize=1)
def _idle_env() -> Any:
    """Environments that HER asks for rewards."""
    return make_vec_env(lambda: BitFlippingEnv(80, continuous=True), ENVS)

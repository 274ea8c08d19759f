"""Worker process of ``benchmarks.trees``: one buffer of one source tree, timed on request.

It runs in the interpreter of the measured tree, which may be an older version of this project. Therefore it imports
nothing of this repository except the public ``sb3_extra_buffers.compressed``. Requests and answers are lines of JSON.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces

from sb3_extra_buffers import compressed

ACTIONS = spaces.Discrete(9)
VECTOR = 8
ROLLOUT_STEPS, EPOCHS, MINIBATCH = 128, 4, 256
#: Transitions per timed request of ``add``: a multiple of what buffers compress together.
ADDED = 256
#: Timed calls per request of ``sample``, by batch size.
SAMPLES = {32: 16, 256: 4}
_WARM_UP_STEPS = 64


class Stream:
    """Transitions of several environments that repeat one recorded game, each from another position.

    :param folder: has ``observations.npy``, shape ``(n, 4, 84, 84)``, and ``first.npy``, which marks starts of episodes
    :param n_envs: number of environments
    :param is_dict: whether observations are a Dict of the image and a vector
    """

    def __init__(self, folder: Path, n_envs: int, is_dict: bool) -> None:
        self._images = np.load(folder / "observations.npy", mmap_mode="r")
        first = np.load(folder / "first.npy")
        self._cells = np.flatnonzero(~first[1:])
        self._is_last = np.append(first, True)[self._cells + 2]
        self._at = np.arange(n_envs) * len(self._cells) // n_envs
        self._random = np.random.default_rng(0)
        self._vectors = self._random.random((len(self._images), VECTOR), np.float32)
        self._is_dict = is_dict
        image = spaces.Box(0, 255, self._images.shape[1:], np.uint8)
        vector = spaces.Box(0, 1, (VECTOR,), np.float32)
        self.space: Any = spaces.Dict({"image": image, "vector": vector}) if is_dict else image

    def step(self) -> tuple[Any, ...]:
        """The arguments of ``ReplayBuffer.add``, in new arrays."""
        cells, done, n_envs = self._cells[self._at], self._is_last[self._at], len(self._at)
        self._at = (self._at + 1) % len(self._cells)
        done = done | (self._at == 0)
        actions, rewards = self._random.integers(9, size=(n_envs, 1)), self._random.random(n_envs, np.float32)
        return self._observe(cells), self._observe(cells + 1), actions, rewards, done, [{} for _ in range(n_envs)]

    def _observe(self, cells: Any) -> Any:
        images = np.array(self._images[cells])
        return {"image": images, "vector": self._vectors[cells]} if self._is_dict else images


class Worker:
    """A full replay buffer and a rollout buffer, with their operations.

    :param setup: ``folder``, ``n_envs``, ``transitions``, ``is_dict`` and ``options`` of the buffers
    """

    def __init__(self, setup: dict[str, Any]) -> None:
        th.set_num_threads(1)  # tensors are made by one memcpy each; a second thread only adds noise
        self._setup = setup
        self._stream = self._open()
        # Libraries and compiled code do not count as memory of the buffer.
        small = self._make(_WARM_UP_STEPS * setup["n_envs"])
        self._fill(small, self._open())
        small.sample(32)
        del small
        before = _resident_nbytes()
        self._replay = self._make(setup["transitions"])
        self._fill(self._replay, self._stream)
        resident, report = _resident_nbytes() - before, self._replay.memory_report()
        self.memory = {"reported": report.live_nbytes + report.overhead, "resident": resident}
        kinds = compressed.CompressedDictRolloutBuffer, compressed.CompressedRolloutBuffer
        kind: Any = kinds[0] if setup["is_dict"] else kinds[1]
        both = self._stream.space, ACTIONS
        self._rollout = kind(ROLLOUT_STEPS, *both, "cpu", n_envs=setup["n_envs"], **setup["options"])
        self.operations: dict[str, Callable[[], dict[str, Any]]] = {
            "add": self._add,
            **{f"sample({size})": partial(self._sample, size) for size in SAMPLES},
            "get": self._get,
            "digest": self._digest,
        }

    def _open(self) -> Stream:
        return Stream(Path(self._setup["folder"]), self._setup["n_envs"], self._setup["is_dict"])

    def _make(self, transitions: int) -> Any:
        kinds = compressed.CompressedDictReplayBuffer, compressed.CompressedReplayBuffer
        kind: Any = kinds[0] if self._setup["is_dict"] else kinds[1]
        return kind(transitions, self._stream.space, ACTIONS, "cpu", self._setup["n_envs"], **self._setup["options"])

    @staticmethod
    def _fill(buffer: Any, stream: Stream) -> None:
        for _ in range(buffer.buffer_size + 1):
            buffer.add(*stream.step())

    def _add(self) -> dict[str, Any]:
        steps = [self._stream.step() for _ in range(ADDED // self._setup["n_envs"])]

        def work() -> None:
            for step in steps:
                self._replay.add(*step)

        return _timed(work, ADDED)

    def _sample(self, size: int) -> dict[str, Any]:
        def work() -> None:
            for _ in range(SAMPLES[size]):
                self._replay.sample(size)

        return _timed(work, SAMPLES[size])

    def _get(self) -> dict[str, Any]:
        rollout, stream, zeros = self._rollout, self._open(), th.zeros(self._setup["n_envs"])
        rollout.reset()
        done = np.ones(self._setup["n_envs"], np.bool_)
        for _ in range(ROLLOUT_STEPS):
            obs, _, action, reward, following, _ = stream.step()
            rollout.add(obs, action, reward, done, zeros, zeros)
            done = following
        rollout.compute_returns_and_advantage(zeros, done)

        epochs = EPOCHS * max(1, 8 // self._setup["n_envs"])  # short rollouts more often

        def work() -> None:
            for _ in range(epochs):
                for _ in rollout.get(MINIBATCH):
                    pass

        return _timed(work, epochs * -(-ROLLOUT_STEPS * self._setup["n_envs"] // MINIBATCH))

    def _digest(self) -> dict[str, Any]:
        """Digest of batches, which must be equal in both trees."""
        np.random.seed(0)
        digest = hashlib.sha256()
        for batch in (self._replay.sample(MINIBATCH), *self._rollout.get(MINIBATCH)):
            for tensor in _tensors(batch):
                digest.update(tensor.contiguous().numpy().tobytes())
        return {"digest": digest.hexdigest()}


def _tensors(batch: Any) -> Iterator[th.Tensor]:
    for value in batch:
        if isinstance(value, dict):
            yield from (value[key] for key in sorted(value))
        elif value is not None:
            yield value


def _timed(work: Callable[[], None], count: int) -> dict[str, float]:
    """Wall and CPU seconds per unit of work."""
    gc.collect()
    wall, cpu = perf_counter(), process_time()
    work()
    return {"cpu": (process_time() - cpu) / count, "wall": (perf_counter() - wall) / count}


def _resident_nbytes() -> int:
    """Resident anonymous memory of this process after ``malloc_trim``; 0 where the system does not report it."""
    gc.collect()
    if sys.platform != "linux":
        return 0
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def main() -> None:
    """Answer requests until stdin ends. The first one is the setup."""
    # What libraries print must not disturb the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(content: dict[str, Any]) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    answer({"package": str(Path(next(iter(compressed.__path__))).resolve())})
    worker = Worker(json.loads(sys.stdin.readline()))
    answer(worker.memory)
    for line in sys.stdin:
        answer(worker.operations[json.loads(line)]())


if __name__ == "__main__":
    main()

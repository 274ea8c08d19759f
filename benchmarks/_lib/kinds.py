"""Kinds of observations from real environments, and a process that holds one buffer full of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import FrameStackObservation
from numpy.typing import NDArray

from benchmarks._lib.measure import resident_nbytes

Array = NDArray[Any]
Environment = gymnasium.Env[Any, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of observations.

    :param title: for tables and plots
    :param make: makes the environment
    :param requires: what to install for it
    """

    title: str
    make: Callable[[], Environment]
    requires: str


class Channels(gymnasium.ObservationWrapper[Array, Any, Array]):
    """Stacked images ``(stack, height, width, channels)`` as one image with the channels of all."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        stack, height, width, channels = env.observation_space.shape or ()
        self.observation_space = spaces.Box(0, 255, (height, width, stack * channels), np.uint8)

    def observation(self, observation: Array) -> Array:
        return np.concatenate(list(observation), axis=-1)


def _car(stack: int = 1) -> Environment:
    env: Environment = gymnasium.make("CarRacing-v3")
    return env if stack == 1 else Channels(FrameStackObservation(env, stack))


def _minigrid() -> Environment:
    wrappers: Any = import_module("minigrid.wrappers")
    env: Environment = wrappers.ImgObsWrapper(wrappers.RGBImgPartialObsWrapper(gymnasium.make("MiniGrid-FourRooms-v0")))
    return env


def _doom(observe: str) -> Environment:
    from benchmarks._lib.doom import DoomEnv

    return DoomEnv(observe=observe)


def _atari(gray: bool) -> Environment:
    import ale_py

    gymnasium.register_envs(ale_py)
    env: Environment = gymnasium.make("ALE/MsPacman-v5", frameskip=1)
    size = 84 if gray else 96
    env = gymnasium.wrappers.AtariPreprocessing(env, screen_size=size, grayscale_obs=gray)
    return FrameStackObservation(env, 4) if gray else env


KINDS = {
    "atari": Kind("MsPacman, gray, 4 x 84 x 84", lambda: _atari(gray=True), "ale-py opencv-python-headless"),
    "atari-rgb": Kind("MsPacman, RGB, 96 x 96", lambda: _atari(gray=False), "ale-py opencv-python-headless"),
    "car": Kind("CarRacing, RGB, 96 x 96", _car, "gymnasium[box2d]"),
    "car-stack": Kind("CarRacing, three RGB images, 96 x 96", lambda: _car(3), "gymnasium[box2d]"),
    "minigrid": Kind("MiniGrid FourRooms, RGB, 56 x 56", _minigrid, "minigrid"),
    "doom": Kind("Doom, RGB, 120 x 160", lambda: _doom("rgb"), "vizdoom"),
    "doom-masks": Kind("Doom, segmentation masks, 120 x 160", lambda: _doom("mask"), "vizdoom"),
    "humanoid": Kind("Humanoid, 348 float64", lambda: gymnasium.make("Humanoid-v5"), "gymnasium[mujoco]"),
    "cheetah": Kind("HalfCheetah, 17 float64", lambda: gymnasium.make("HalfCheetah-v5"), "gymnasium[mujoco]"),
}


def record(kind: Kind, steps: int, folder: Path, seed: int = 0) -> None:
    """Play at random and write the observations, and which of them begin an episode, as two arrays.

    Images are written channels first, as ``VecTransposeImage`` gives them to a buffer.

    :param kind: what to play
    :param steps: number of observations
    :param folder: for ``observations.npy`` and ``first.npy``
    :param seed: of the environment and of its actions
    """
    env = kind.make()
    env.action_space.seed(seed)
    shape = env.observation_space.shape or ()
    is_image = len(shape) == 3 and shape[-1] in (1, 3, 9)
    observations, first = [], np.zeros(steps, bool)
    seen, over = None, True
    for step in range(steps):
        if over:
            (seen, _), over = env.reset(seed=seed + step), False
            first[step] = True
        else:
            seen, _, terminated, truncated, _ = env.step(env.action_space.sample())
            over = bool(terminated or truncated)
        array = np.asarray(seen)
        observations.append(np.ascontiguousarray(array.transpose(2, 0, 1)) if is_image else array.copy())
    env.close()
    np.save(folder / "observations.npy", np.stack(observations))
    np.save(folder / "first.npy", first)


class Worker:
    """One full buffer in a process of its own, whose operations are timed on request.

    :param folder: a recording, which is repeated as often as needed
    :param options: arguments of ``CompressedReplayBuffer``; ``None`` for Stable-Baselines3's buffer
    :param transitions: size of the buffer
    """

    def __init__(self, folder: Path, options: dict[str, Any] | None, transitions: int) -> None:
        import torch as th
        from stable_baselines3.common.buffers import ReplayBuffer

        from sb3_extra_buffers.compressed import CompressedReplayBuffer

        th.set_num_threads(1)
        observations = np.load(folder / "observations.npy", mmap_mode="r")
        first = np.load(folder / "first.npy")
        self._observations = observations
        self._cells = np.flatnonzero(~first[1:])
        self._done = np.append(first, True)[self._cells + 2]
        low, high = (0, 255) if observations.dtype == np.uint8 else (-np.inf, np.inf)
        space = spaces.Box(low, high, observations.shape[1:], observations.dtype.type)

        def fill(size: int) -> Any:
            arguments: dict[str, Any] = {"action_space": spaces.Discrete(4), "device": "cpu", "n_envs": 1}
            kind = ReplayBuffer if options is None else CompressedReplayBuffer
            buffer = kind(buffer_size=size, observation_space=space, **arguments, **(options or {}))
            for _ in range(size):
                buffer.add(*next(self._steps))
            for batch_size in (32, 256):
                buffer.sample(batch_size)
            return buffer

        self._steps = self._stream()
        # Codecs, compiled code and the memory of batches are there before the memory of the buffer is measured.
        fill(min(transitions, 600))
        before = resident_nbytes()
        self.buffer = fill(transitions)
        self.resident = resident_nbytes() - before

    def _stream(self) -> Iterator[tuple[Any, ...]]:
        action, reward = np.zeros((1, 1), np.int64), np.zeros(1, np.float32)
        while True:
            for cell, done in zip(self._cells.tolist(), self._done.tolist()):
                pair = self._observations[cell : cell + 2]
                yield np.array(pair[:1]), np.array(pair[1:]), action, reward, np.array([done]), [{}]

    def add(self) -> float:
        """Seconds per transition, of 64."""
        steps = [next(self._steps) for _ in range(64)]
        start = perf_counter()
        for step in steps:
            self.buffer.add(*step)
        return (perf_counter() - start) / len(steps)

    def sample(self, batch_size: int) -> float:
        """Seconds per batch, of a few."""
        times = 8 if batch_size < 100 else 3
        start = perf_counter()
        for _ in range(times):
            self.buffer.sample(batch_size)
        return (perf_counter() - start) / times

    def digest(self) -> str:
        """A digest of batches that equal seeds make equal."""
        np.random.seed(1)  # what Stable-Baselines3's buffers draw from
        found = hashlib.sha256()
        for _ in range(4):
            for tensor in self.buffer.sample(64):
                if tensor is not None:
                    found.update(tensor.numpy().tobytes())
        return found.hexdigest()

    def describe(self) -> str:
        """How the buffer stores observations, in its own words."""
        report = getattr(self.buffer, "memory_report", None)
        return "" if report is None else str(report())


def serve(connection: Connection, folder: Path, options: dict[str, Any] | None, transitions: int) -> None:
    """Answer requests until the other end is closed.

    :param connection: receives a name and arguments, sends the result or the error
    :param folder: a recording
    :param options: see :class:`Worker`
    :param transitions: see :class:`Worker`
    """
    try:
        worker = Worker(folder, options, transitions)
        connection.send(worker.resident)
        while True:
            name, *arguments = connection.recv()
            connection.send(getattr(worker, name)(*arguments))
    except EOFError:
        return
    except Exception as error:  # the other end reports it
        connection.send(error)

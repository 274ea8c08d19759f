"""Full buffers with the same content: Stable-Baselines3's and ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch as th
from gymnasium.spaces import Space
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

from benchmarks._lib.atari import ACTION_SPACE, OBSERVATION_SPACE, Transitions
from benchmarks._lib.measure import WrongBytesError
from sb3_extra_buffers import frames
from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer
from sb3_extra_buffers.vec_buf import DummyVecReplayBuffer, DummyVecRolloutBuffer

#: Name of Stable-Baselines3's buffer among the codecs.
SB3 = "SB3"
#: Prefix of frame layouts among the codecs: ``frames/speed``, ``frames/memory/numpy``.
FRAMES = "frames/"
#: Prefix of a codec: whole observations, also if they are images.
CELLS = "cells:"
ROLLOUT_STEPS = 128
ROLLOUT_ENVS = 8
_SEEDS = 5


def make_replay(
    codec: str,
    transitions: int,
    n_envs: int,
    threads: int | None = None,
    optimize_memory_usage: bool = False,
    spaces: tuple[Space[Any], Space[Any]] = (OBSERVATION_SPACE, ACTION_SPACE),
) -> ReplayBuffer:
    """An empty replay buffer.

    :param codec: name of a codec, or ``"SB3"``
    :param transitions: size of the buffer
    :param n_envs: number of environments
    :param threads: threads that decode; ``None`` for the automatic choice
    :param optimize_memory_usage: one observation per step, without timeouts, which Stable-Baselines3 cannot combine
    :param spaces: observation space and action space
    """
    options: dict[str, Any] = {}
    if optimize_memory_usage:
        options = {"optimize_memory_usage": True, "handle_timeout_termination": False}
    if codec == SB3:
        return ReplayBuffer(transitions, *spaces, "cpu", n_envs, **options)
    options |= {"threads": threads, **_storage(codec)}
    with _kernels(codec):
        return CompressedReplayBuffer(transitions, *spaces, "cpu", n_envs, **options)


def _storage(codec: str) -> dict[str, Any]:
    if codec.startswith(FRAMES):
        return {"layout": "frames", "prefer": codec.split("/")[1]}
    if codec.startswith(CELLS):
        return {"layout": "cells", "compression_method": codec.removeprefix(CELLS)}
    return {"compression_method": codec}


@contextmanager
def _kernels(codec: str) -> Iterator[None]:
    """Without compiled kernels if the name ends with ``/numpy``."""
    if not codec.endswith("/numpy"):
        yield
        return
    reference = frames.create("numpy")
    with mock.patch.object(frames, "create", return_value=reference):
        yield


def fill_replay(buffer: ReplayBuffer, source: Transitions) -> None:
    """Add until the buffer is full and begins to overwrite."""
    for _ in range(buffer.buffer_size + 1):
        buffer.add(*source.step())


def fill_replays(buffers: Iterable[ReplayBuffer], source: Transitions) -> None:
    """Fill several buffers of one size from one stream.

    :param buffers: empty buffers
    :param source: the transitions
    """
    first, *others = buffers
    spaces = first.observation_space, first.action_space
    size, n_envs = first.buffer_size * first.n_envs, first.n_envs
    fill_replay(DummyVecReplayBuffer(size, *spaces, "cpu", n_envs, buffers=[first, *others]), source)


def make_rollouts(
    names: Iterable[str], observations: NDArray[np.uint8], threads: int | None = None
) -> dict[str, RolloutBuffer]:
    """The same complete rollout of 128 steps of eight environments in several buffers.

    :param names: names of codecs, or ``"SB3"``
    :param observations: shape ``(n, 4, 84, 84)``
    :param threads: threads that decode; ``None`` for the automatic choice
    """
    size, spaces = ROLLOUT_STEPS, (OBSERVATION_SPACE, ACTION_SPACE)
    rollouts: dict[str, RolloutBuffer] = {}
    for codec in names:
        kind: type[RolloutBuffer] = RolloutBuffer if codec == SB3 else CompressedRolloutBuffer
        storage: dict[str, Any] = {} if codec == SB3 else {**_storage(codec), "threads": threads}
        with _kernels(codec):
            rollouts[codec] = kind(size, *spaces, "cpu", n_envs=ROLLOUT_ENVS, **storage)
    stream = DummyVecRolloutBuffer(size, *spaces, "cpu", ROLLOUT_ENVS, buffers=rollouts.values())
    source = Transitions(observations, ROLLOUT_ENVS)
    zeros, done = th.zeros(ROLLOUT_ENVS), np.ones(ROLLOUT_ENVS, np.bool_)
    for _ in range(ROLLOUT_STEPS):
        step = source.step()
        stream.add(step.obs, step.action, step.reward, done, zeros, zeros)
        done = step.done
    stream.compute_returns_and_advantage(zeros, done)
    return rollouts


def check_replay(label: str, buffer: ReplayBuffer, plain: ReplayBuffer, batch_size: int) -> None:
    """Raise unless both return the same batches for the same seeds, bit by bit."""
    for seed in range(_SEEDS):
        np.random.seed(seed)
        batch = buffer.sample(batch_size)
        np.random.seed(seed)
        _check(f"{label}: sample({batch_size})", batch, plain.sample(batch_size))


def check_rollout(label: str, buffer: RolloutBuffer, plain: RolloutBuffer, batch_size: int) -> None:
    """Raise unless both return the same minibatches for the same seed, bit by bit."""
    np.random.seed(0)
    batches = list(buffer.get(batch_size))
    np.random.seed(0)
    for batch, other in zip(batches, plain.get(batch_size)):
        _check(f"{label}: get({batch_size})", batch, other)


def _check(label: str, batch: Iterable[th.Tensor | None], other: Iterable[th.Tensor | None]) -> None:
    for ours, theirs in zip(batch, other):
        if ours is None or theirs is None:
            same = ours is theirs
        else:
            same = ours.dtype == theirs.dtype and th.equal(ours, theirs)
        if not same:
            raise WrongBytesError(f"{label} differs from Stable-Baselines3's buffer")

"""Replay buffers on a device, and Stable-Baselines3's for it, with the same content."""

from __future__ import annotations

from typing import Any

import torch as th
from stable_baselines3.common.buffers import ReplayBuffer

from benchmarks.buffer_building import SB3
from benchmarks.transitions import ACTION_SPACE, OBSERVATION_SPACE
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer

#: The name of the frame store among the codecs.
FRAMES = "frames"
CONTENDERS = ("none", "rle", "zstd-5", "lz4-block/1", FRAMES)


def make_gpu_replay(name: str, transitions: int, n_envs: int, device: th.device, threads: int | None) -> ReplayBuffer:
    """An empty replay buffer.

    :param name: a codec as people type it, ``"frames"``, or ``"SB3"``, whose observations are on the host
    :param transitions: how many it holds
    :param n_envs: how many environments
    :param device: where batches are delivered, and where ours keeps its observations
    :param threads: how many threads decode on the host; ``None`` uses as many as pay
    """
    if name == SB3:
        return ReplayBuffer(transitions, OBSERVATION_SPACE, ACTION_SPACE, device, n_envs)
    storage: dict[str, Any] = {"compression_method": name, "layout": "cells"}
    if name == FRAMES:
        storage = {"compression_method": "auto", "layout": "frames"}
    return GpuReplayBuffer(transitions, OBSERVATION_SPACE, ACTION_SPACE, device, n_envs, threads=threads, **storage)

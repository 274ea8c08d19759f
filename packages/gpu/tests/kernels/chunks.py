"""Chunks of frames for the tests of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from sb3_extra_buffers.frames.packing import END, Parsed, count_dtype, patch
from sb3_extra_buffers.gpu_buffers.kernels.frame_reference import Needs


def pack(base: np.ndarray, frames: np.ndarray) -> bytes:
    """A chunk, as ``docs/frames.md`` describes it."""
    patches = [patch(old, new) for old, new in zip([base, *frames[:-1]], frames)]
    counts = np.array([len(steps) // 2 for steps, _ in patches], count_dtype(len(base)))
    parts = [counts.view(np.uint8), *(steps for steps, _ in patches), *(put for _, put in patches), END]
    return np.concatenate(parts).tobytes()


def unpack(chunk: bytes, base: np.ndarray, size: int, upto: int) -> np.ndarray:
    """Its first frames, by the core's means."""
    data = np.frombuffer(chunk, np.uint8)
    parsed = Parsed([data], np.array([size]), np.array([upto]), len(base))
    frame, frames = base.copy(), []
    for number in range(upto):
        parsed.apply(frame, 0, number, number + 1)
        frames.append(frame.copy())
    return np.stack(frames)


def play(nbytes: int, number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A base and frames: a little changes, nothing, all, and what is longer than a step can say."""
    random = np.random.default_rng((seed, nbytes, number))
    base = random.integers(0, 256, nbytes, dtype=np.uint8)
    frames = np.empty((number, nbytes), np.uint8)
    frame = base.copy()
    for index in range(number):
        if index % 4 == 1:
            frame = frame.copy()
        elif index % 8 == 4:
            frame = random.integers(0, 256, nbytes, dtype=np.uint8)
        else:
            frame = frame.copy()
            for _ in range(index + 1):
                begin = random.integers(nbytes)
                frame[begin : begin + random.integers(1, 400 if index % 8 == 6 else 9)] += 1
        frames[index] = frame
    return base, frames


@dataclass
class Batch:
    """Chunks, and which of their frames are needed where.

    :param chunks: the bytes of each
    :param sizes: frames of each
    :param bases: of each
    :param wanted: which frames are needed of each, ascending
    :param targets: where they go, for each chunk
    """

    chunks: Sequence[bytes]
    sizes: Sequence[int]
    bases: Sequence[np.ndarray]
    wanted: Sequence[Sequence[int]]
    targets: Sequence[Sequence[int]]

    @property
    def needs(self) -> Needs:
        begin = np.cumsum([0, *map(len, self.wanted)])
        frame, target = ([number for each in lists for number in each] for lists in (self.wanted, self.targets))
        return Needs(
            torch.tensor(begin, dtype=torch.int32),
            torch.tensor(frame, dtype=torch.int32),
            torch.tensor(target, dtype=torch.int64),
        )

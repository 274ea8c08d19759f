"""A buffer whose content is known by numbers: whatever is loaded is checked to the last bit without a second copy."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.errors import FileError, ForeignFileError
from scripts.faults.children import begins, failed, tell
from scripts.faults.tally import Tally

SPACE, ACTIONS = spaces.Box(0, 255, (4, 24, 24), np.uint8), spaces.Discrete(3)
ROWS, EVERY = 300, 40
LAYOUTS: tuple[dict[str, Any], ...] = (
    {"layout": "frames"},
    {"layout": "cells", "compression_method": "gzip"},
    {"layout": "cells", "compression_method": "gzip", "heap": "ring", "heap_kwargs": {"capacity": 1 << 15}},
    {"layout": "frames", "heap": "mmap"},
    {},
)


def frame(step: int) -> NDArray[np.uint8]:
    """The screen at a step."""
    screen = np.zeros((24, 24), np.uint8)
    screen[step % 20 : step % 20 + 4, (step // 20) % 20 : (step // 20) % 20 + 4] = 1 + step % 200
    return screen


def stack(step: int) -> NDArray[np.uint8]:
    """The observation at a step."""
    return np.stack([frame(step - back) if step >= back else np.zeros((24, 24), np.uint8) for back in (3, 2, 1, 0)])


def add(buffer: CompressedReplayBuffer, first: int, count: int) -> None:
    """Add steps by their numbers; the reward is the number."""
    for step in range(first, first + count):
        obs, following = stack(step)[np.newaxis], stack(step + 1)[np.newaxis]
        buffer.add(obs, following, np.array([[step % 3]]), np.array([float(step)]), np.array([False]), [{}])


def steps_of(buffer: CompressedReplayBuffer) -> int:
    """How many steps were added, by the newest reward."""
    return int(buffer.rewards[(buffer.pos - 1) % ROWS, 0]) + 1 if buffer.size() else 0


def is_right(buffer: CompressedReplayBuffer) -> bool:
    """Whether every transition that can be sampled is what its number says, and all numbers are there."""
    return steps_of(buffer) % EVERY == 0 and are_right(buffer)


def are_right(buffer: CompressedReplayBuffer) -> bool:
    """Whether every transition that can be sampled is what its number says."""
    steps, kept = steps_of(buffer), buffer._whole_rows()
    rows = (buffer.pos - kept + np.arange(kept)) % ROWS
    batch = buffer._get_samples(rows)
    numbers = np.arange(steps - kept, steps)
    fits = bool((batch.rewards.numpy()[:, 0] == numbers).all())
    for number, obs, following in zip(numbers.tolist(), batch.observations.numpy(), batch.next_observations.numpy()):
        fits = fits and np.array_equal(obs, stack(number)) and np.array_equal(following, stack(number + 1))
    return fits and bool((batch.actions.numpy()[:, 0] == numbers % 3).all())


def new_buffer(options: dict[str, Any]) -> CompressedReplayBuffer:
    """A buffer without steps."""
    return CompressedReplayBuffer(ROWS, SPACE, ACTIONS, "cpu", **options)


def loaded(path: Path, options: dict[str, Any]) -> CompressedReplayBuffer:
    """What is there; a new buffer if nothing was committed yet."""
    try:
        return CompressedReplayBuffer.load(path, "cpu", verify=True)
    except (FileNotFoundError, ForeignFileError):
        return new_buffer(options)


def work(path: Path, options: dict[str, Any], telling: int, saves: int, may_fail: bool = False) -> None:
    """Load, go on, and save again and again; tell each number of steps when it is committed.

    :param path: the checkpoint
    :param options: of a buffer, if there is none yet
    :param telling: where to
    :param saves: how often
    :param may_fail: whether the system has been told to refuse writing
    """
    buffer = loaded(path, options)
    for _ in range(saves):
        add(buffer, steps_of(buffer), EVERY)
        begins(telling)
        try:
            buffer.save(path)
        except OSError:
            if not may_fail:
                raise
            failed(telling)
        else:
            tell(telling, steps_of(buffer))


def judge(tally: Tally, path: Path, options: dict[str, Any], committed: int) -> int:
    """Compare what is there with what was committed; returns what is there."""
    tally.runs += 1
    try:
        buffer = loaded(path, options)
    except FileError as error:
        print(error, file=sys.stderr)
        tally.lost += 1
        return committed
    tally.lost += steps_of(buffer) < committed
    tally.wrong += not (is_right(buffer) if buffer.size() else committed == 0)
    return max(committed, steps_of(buffer))

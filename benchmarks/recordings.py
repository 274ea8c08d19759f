"""How fast and how small are recordings? See ``python -m benchmarks.recordings --help``.

Every recording is compared with a ring of plain numpy arrays that is filled with the same frames.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from rich import box
from rich.table import Table

from benchmarks._lib.console import table_console
from benchmarks._lib.doom import DoomEnv
from sb3_extra_buffers.recording import RecordBuffer, force_alloc_mem, load

Frames = NDArray[Any]
STORAGE: dict[str, dict[str, Any]] = {
    "none": {"compression_method": "none"},
    "auto (balanced)": {},
    "speed": {"prefer": "speed"},
    "memory": {"prefer": "memory"},
    "cells": {"layout": "cells"},
}


def main() -> None:
    """Play, record, and print a table for each kind of frames."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.recordings",
        description="Time and size of recordings: add, read, save, read the file.",
    )
    parser.add_argument("--quick", action="store_true", help="a short run with a few frames")
    count = 60 if parser.parse_args().quick else 1500
    sources: dict[str, Callable[[], gymnasium.Env[Any, Any]]] = {
        "Doom, masks, 120 x 160": lambda: DoomEnv(observe="mask", frame_skip=1),
        "Doom, RGB, 120 x 160": lambda: DoomEnv(observe="rgb", frame_skip=1),
        "MsPacman, RGB, 210 x 160": _pacman,
    }
    for title, make in sources.items():
        table_console().print(_table(title, _play(make(), count)))


def _pacman() -> gymnasium.Env[Any, Any]:
    import ale_py

    gymnasium.register_envs(ale_py)
    return gymnasium.make("ALE/MsPacman-v5", frameskip=1)


def _play(env: gymnasium.Env[Any, Any], count: int) -> Frames:
    """Frames of random play; each action is held for some frames."""
    frame, _ = env.reset(seed=0)
    env.action_space.seed(0)
    frames: list[Frames] = []
    while len(frames) < count:
        if not len(frames) % 8:
            action = env.action_space.sample()
        frames.append(np.array(frame))
        frame, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            frame, _ = env.reset()
    env.close()
    return np.array(frames)


def _table(title: str, frames: Frames) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for heading in ("", "add, us", "times smaller", "read, us", "save, us", "file, times smaller", "read file, us"):
        table.add_column(heading, justify="right" if heading else "left")
    ring = np.ones_like(frames)
    table.add_row("numpy ring", f"{_per_frame(lambda: _fill(ring, frames), frames):.0f}", "1.0")
    for name, storage in STORAGE.items():
        table.add_row(name, *_measured(frames, storage))
    return table


def _fill(ring: Frames, frames: Frames) -> None:
    for number, frame in enumerate(frames):
        ring[number] = frame


def _measured(frames: Frames, storage: dict[str, Any]) -> list[str]:
    _, height, width, channels = frames.shape
    buffer = RecordBuffer((height, width), channels, len(frames), **storage)
    if storage.get("compression_method") == "none":
        force_alloc_mem(buffer, 1)  # as that of the ring
    add = _per_frame(lambda: _record(buffer, frames), frames)
    read = _per_frame(lambda: _read(buffer), frames)
    with TemporaryDirectory() as folder:
        path = Path(folder, "recording")
        save = _per_frame(lambda: buffer.save(path, progress=False), frames)
        with load(path) as saved:
            again = _per_frame(lambda: _read(saved), frames)
            smaller = frames.nbytes / saved.nbytes
    columns = (add, buffer.memory.ratio, read, save, smaller, again)
    return [f"{value:.1f}" if number in (1, 4) else f"{value:.0f}" for number, value in enumerate(columns)]


def _record(buffer: RecordBuffer, frames: Frames) -> None:
    for frame in frames:
        buffer.add(frame, 1.0, 1)


def _read(recording: Any) -> None:
    for _ in recording.batches():
        pass


def _per_frame(work: Callable[[], Any], frames: Frames) -> float:
    begin = time.process_time()
    work()
    return (time.process_time() - begin) / len(frames) * 1e6


if __name__ == "__main__":
    main()

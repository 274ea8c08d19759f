"""A disk that is really full: a file system of some kilobytes in memory."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.faults.steps import EVERY, LAYOUTS, add, judge, loaded, new_buffer, steps_of
from scripts.faults.tally import NotPermittedError, Tally


@contextmanager
def tiny_disk(folder: Path, nbytes: int) -> Iterator[Path]:
    """A file system with room for so many bytes."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={nbytes}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NotPermittedError(str(error)) from None
    if mounted.returncode:
        raise NotPermittedError(mounted.stderr.strip() or "mount failed")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def full_disks(folder: Path, runs: int, rng: random.Random) -> Tally:
    """Save to a disk that others fill up; what was saved before stays, and when there is room again, saving works."""
    tally, run = Tally("ENOSPC: a disk that is full, then has room again"), 0
    while tally.runs < runs:
        options, disk = LAYOUTS[run % len(LAYOUTS)], folder / f"disk-{run}"
        run += 1
        with tiny_disk(disk, 1 << 20):
            path, filler, buffer, committed = disk / "checkpoint", disk / "filler", new_buffer(options), 0
            for _ in range(min(25, runs - tally.runs)):
                add(buffer, steps_of(buffer), EVERY)
                _fill(filler, rng.randrange(15_000))
                try:
                    buffer.save(path)
                except OSError:
                    tally.injected += 1
                    judge(tally, path, options, committed)
                    filler.unlink()
                    buffer.save(path)
                    tally.runs -= 1  # once refused, once saved: one disk that was full
                tally.committed += 1
                committed = steps_of(buffer)
                judge(tally, path, options, committed)
                filler.unlink(missing_ok=True)
                if rng.random() < 0.3:
                    buffer = loaded(path, options)
    return tally


def _fill(filler: Path, left: int) -> None:
    """Write until so many bytes are left."""
    try:
        with filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        size = max(0, filler.stat().st_size - left)
        with filler.open("r+b") as file:
            file.truncate(size)

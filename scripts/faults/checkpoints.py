"""Faults of processes, disks and files while checkpoints are saved and loaded."""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import signal
import time
from importlib import import_module
from io import FileIO
from pathlib import Path
from typing import Any

from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.errors import FileError
from scripts.faults.children import Told, begins, ended_by_itself_badly, forked, in_child, tell
from scripts.faults.steps import EVERY, LAYOUTS, add, is_right, judge, loaded, new_buffer, steps_of, work
from scripts.faults.tally import Tally

#: About how long a save takes, in seconds, and how large the files are that it writes: faults are spread over these.
SAVE_SECONDS, FILE_NBYTES = 0.05, 20_000
#: Where files are opened to be written.
replacing: Any = import_module("sb3_extra_buffers.checkpoints.atomic")


def first_kills(folder: Path, runs: int, rng: random.Random) -> Tally:
    """Kill a process that saves a buffer to one new folder after the other; what it told is there, each whole."""
    tally = Tally("SIGKILL during a first save")
    for run in range(runs):
        options, steps, base = LAYOUTS[run % len(LAYOUTS)], EVERY * rng.randrange(1, 9), folder / f"first-{run}"
        base.mkdir()

        def save(telling: int, options: dict[str, Any] = options, steps: int = steps, base: Path = base) -> None:
            buffer = new_buffer(options)
            add(buffer, 0, steps)
            for number in range(1000):
                twin = CompressedReplayBuffer.load(base / "0", "cpu") if number else buffer
                begins(telling)
                twin.save(base / str(number))
                tell(telling, number)

        told = in_child(save, 1, rng.uniform(0, SAVE_SECONDS))
        _count(tally, told)
        saved = len(told.committed)
        for number in range(saved + 1):
            judge(tally, base / str(number), options, steps if number < saved else 0)
        tally.runs -= saved  # one process was killed, whatever there was to look at
        shutil.rmtree(base)
    return tally


def kills(folder: Path, runs: int, rng: random.Random) -> Tally:
    """Kill a process that loads, adds and saves, at a random moment; the next one goes on with what is there."""
    tally, committed, options, path = Tally("SIGKILL during incremental saves"), 0, LAYOUTS[0], folder
    for run in range(runs):
        if run % 25 == 0:
            committed, options, path = 0, LAYOUTS[run // 25 % len(LAYOUTS)], folder / f"killed-{run}"
        delay = rng.uniform(0, SAVE_SECONDS)
        told = in_child(lambda pipe: work(path, options, pipe, 1000), rng.randrange(4), delay)  # noqa: B023
        _count(tally, told)
        committed = judge(tally, path, options, max([committed, *told.committed]))
    return tally


def size_limits(folder: Path, runs: int, rng: random.Random) -> Tally:
    """Let the system refuse to write beyond a random size of file."""
    tally, committed, options = Tally("the system refuses to write beyond a size"), 0, LAYOUTS[1]

    def limited(telling: int) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        work(folder / "limited", options, telling, 2, may_fail=True)

    for _ in range(runs):
        limit = rng.randrange(FILE_NBYTES)
        told = in_child(limited)
        _count(tally, told)
        committed = judge(tally, folder / "limited", options, max([committed, *told.committed]))
    return tally


def _count(tally: Tally, told: Told) -> None:
    """Take in what a process has told: it was killed while it saved, or the system has refused to write."""
    tally.injected += (told.is_saving and not told.is_broken) + told.failed
    tally.committed += len(told.committed)
    tally.broken += told.is_broken


class FailingFile(FileIO):
    """A file that fails after some bytes, in whichever file of a checkpoint that is."""

    left = 0

    def write(self, content: Any, /) -> int:
        FailingFile.left -= len(content)
        if FailingFile.left < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().write(content)


def bad_disks(folder: Path, runs: int, rng: random.Random) -> Tally:
    """Let writes raise EIO in the middle of a file; the same buffer saves again afterwards."""
    tally, options, path = Tally("EIO in the middle of a file, then saved again"), LAYOUTS[0], folder / "bad"
    buffer, committed, real = loaded(path, options), 0, replacing.FileIO
    for _ in range(runs):
        add(buffer, steps_of(buffer), EVERY)
        FailingFile.left = rng.randrange(2 * FILE_NBYTES)
        replacing.FileIO = FailingFile
        try:
            buffer.save(path)
            committed = steps_of(buffer)
            tally.committed += 1
        except OSError:
            tally.injected += 1
        finally:
            replacing.FileIO = real
        judge(tally, path, options, committed)
        if rng.random() < 0.5:
            buffer.save(path)
            tally.committed += 1
            committed = judge(tally, path, options, steps_of(buffer))
    return tally


def damages(folder: Path, runs: int, rng: random.Random) -> Tally:
    """Flip a bit, or cut, anywhere in any file: loading with verify=True must fail and name the file."""
    tally, path = Tally("a flipped bit or a cut, anywhere in any file"), folder / "damaged"
    buffer = loaded(path, LAYOUTS[0])
    for _ in range(3):
        add(buffer, steps_of(buffer), EVERY)
        buffer.save(path)
        tally.committed += 1
    paths = sorted(path.iterdir())
    for _ in range(runs):
        tally.runs += 1
        tally.injected += 1
        file = rng.choice(paths)
        content = file.read_bytes()
        changed, place = bytearray(content), rng.randrange(len(content))
        if rng.random() < 0.7:
            changed[place] ^= 1 << rng.randrange(8)
        else:
            del changed[place:]
        file.write_bytes(changed)
        try:
            CompressedReplayBuffer.load(path, "cpu", verify=True)
            tally.unfound += 1
        except FileError as error:
            tally.unfound += file.name not in str(error)
        file.write_bytes(content)
    tally.wrong += not is_right(CompressedReplayBuffer.load(path, "cpu", verify=True))
    return tally


def readers(folder: Path, runs: int, rng: random.Random) -> Tally:
    """Load again and again while another process saves: what is loaded is always one of the states that it saved."""
    tally, options, path = Tally("loaded while another process saves"), LAYOUTS[2], folder / "shared"
    buffer = loaded(path, options)
    add(buffer, 0, EVERY)
    buffer.save(path)
    silent = os.open(os.devnull, os.O_WRONLY)
    child, last = forked(lambda telling: work(path, options, telling, 1_000_000), silent), EVERY
    try:
        for _ in range(runs):
            time.sleep(rng.uniform(0, 0.02))
            found = judge(tally, path, options, last)
            tally.injected += found > last  # it was saved to since
            last = found
    finally:
        os.kill(child, signal.SIGKILL)
        tally.broken += ended_by_itself_badly(child)
        os.close(silent)
    tally.committed += last > EVERY
    return tally

"""How long does a checkpoint take, compared with a pickle? See ``python -m benchmarks.checkpoints --help``.

A buffer is filled with observations of random play, repeated as needed, and saved. 5,000 transitions are added and it
is saved again to the same folder. Then it is opened (median of several times), a first batch is sampled, and the
checkpoint is verified. Stable-Baselines3's buffer is filled with ``--pickled`` transitions, pickled and unpickled in
the same run. Its times and sizes are scaled to the size of ours, and marked with a tilde.
"""

from __future__ import annotations

import argparse
import json
import pickle
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from rich.table import Table
from stable_baselines3.common.buffers import ReplayBuffer

from benchmarks._lib.atari import SCREEN, STACK, stacked_frames
from benchmarks._lib.console import add_json_option, counted, positive, progress_bar, table_console
from benchmarks._lib.machine import machine_info
from sb3_extra_buffers.compressed import CompressedReplayBuffer

SPACE, ACTIONS = spaces.Box(0, 255, (STACK, SCREEN, SCREEN), np.uint8), spaces.Discrete(9)
ADDED, BATCH, OPENED = 5_000, 256, 9


@dataclass
class Figures:
    """Seconds and bytes of one way to save.

    :param what: name of the way
    :param transitions: size of the buffer
    :param measured: size for which it was measured; other figures are scaled
    """

    what: str
    transitions: int
    measured: int
    save_s: float
    again_s: float
    open_s: float
    first_batch_s: float
    verify_s: float | None
    nbytes: int
    again_nbytes: int


def add(buffer: ReplayBuffer, film: NDArray[np.uint8], first: int, count: int) -> None:
    """Add transitions; the film is repeated."""
    rewards, dones, actions = np.zeros(1, np.float32), np.zeros(1), np.zeros((1, 1), np.int64)
    for number in range(first, first + count):
        place = number % (len(film) - 1)
        actions[0, 0] = rewards[0] = number % 9
        buffer.add(film[place : place + 1], film[place + 1 : place + 2], actions, rewards, dones, [{}])


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call, and its result."""
    begin = time.perf_counter()
    found = action()
    return time.perf_counter() - begin, found


def size_of(folder: Path) -> int:
    """Bytes of all files."""
    return sum(file.stat().st_size for file in folder.iterdir())


def checkpoint(film: NDArray[np.uint8], transitions: int, folder: Path) -> Figures:
    """Measure ours."""
    buffer = CompressedReplayBuffer(transitions, SPACE, ACTIONS, "cpu")
    with progress_bar() as progress, counted(progress, f"{transitions:,} transitions", transitions) as report:
        for first in range(0, transitions, ADDED):
            add(buffer, film, first, min(ADDED, transitions - first))
            report(first)
    path = folder / f"checkpoint-{transitions}"
    save_s, _ = timed(lambda: buffer.save(path))
    before = {file.name for file in path.iterdir()}
    nbytes = size_of(path)
    add(buffer, film, transitions, ADDED)
    again_s, _ = timed(lambda: buffer.save(path))
    again = sum(file.stat().st_size for file in path.iterdir() if file.name not in before or "manifest" in file.name)
    # Several times: opening is so short that a single time would be noise.
    opened = [timed(lambda: CompressedReplayBuffer.load(path, "cpu")) for _ in range(OPENED)]
    open_s, loaded = median(seconds for seconds, _ in opened), opened[-1][1]
    first_s, _ = timed(lambda: loaded.sample(BATCH))
    verify_s, _ = timed(lambda: CompressedReplayBuffer.load(path, "cpu", verify=True))
    return Figures("checkpoint", transitions, transitions, save_s, again_s, open_s, first_s, verify_s, nbytes, again)


def pickled(film: NDArray[np.uint8], measured: int, transitions: int, folder: Path) -> Figures:
    """Measure Stable-Baselines3's buffer as its ``save_replay_buffer`` writes it, and scale."""
    buffer = ReplayBuffer(measured, SPACE, ACTIONS, "cpu")
    add(buffer, film, 0, measured)
    path, scale = folder / "buffer.pkl", transitions / measured

    def save() -> None:
        with path.open("wb") as file:
            pickle.dump(buffer, file)

    def load() -> ReplayBuffer:
        with path.open("rb") as file:
            found: ReplayBuffer = pickle.load(file)
        return found

    save_s, _ = timed(save)
    again_s, _ = timed(save)
    open_s, loaded = timed(load)
    first_s, _ = timed(lambda: loaded.sample(BATCH))
    nbytes = int(path.stat().st_size * scale)
    path.unlink()
    times = (save_s * scale, again_s * scale, open_s * scale)
    return Figures("pickle of Stable-Baselines3", transitions, measured, *times, first_s, None, nbytes, nbytes)


def show(figures: Sequence[Figures]) -> None:
    """Print all figures."""
    table = Table(title=f"Checkpoints; saved again after {ADDED:,} more transitions")
    for name in ("transitions", "", "save s", "again s", "open s", "first batch s", "verify s", "MB", "MB again"):
        table.add_column(name, justify="left" if not name else "right")
    for one in figures:
        mark = "~" if one.measured != one.transitions else ""
        verify = "-" if one.verify_s is None else f"{one.verify_s:.2f}"
        times = (f"{mark}{one.save_s:.2f}", f"{mark}{one.again_s:.2f}", f"{mark}{one.open_s:.3f}")
        sizes = (f"{mark}{one.nbytes / 1e6:,.0f}", f"{mark}{one.again_nbytes / 1e6:,.1f}")
        table.add_row(f"{one.transitions:,}", one.what, *times, f"{one.first_batch_s:.3f}", verify, *sizes)
    table_console().print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print a table, and write the figures if ``--json`` is given."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.checkpoints", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--sizes", type=positive, nargs="+", default=[100_000, 1_000_000], help="sizes in transitions")
    parser.add_argument(
        "--pickled", type=positive, default=10_000, help="size of the pickled buffer (default: %(default)s)"
    )
    parser.add_argument("--game", default="MsPacman", help="name of an ALE game (default: %(default)s)")
    parser.add_argument("--frames", type=positive, default=4_000, help="observations to play (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="folder for the files (default: a temporary folder)")
    add_json_option(parser)
    given = parser.parse_args(arguments)
    film = np.ascontiguousarray(np.moveaxis(stacked_frames(given.game, given.frames), -1, 1))
    figures = []
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for size in given.sizes:
            figures.append(pickled(film, min(given.pickled, size), size, Path(folder)))
            figures.append(checkpoint(film, size, Path(folder)))
    show(figures)
    if given.json:
        found = {"machine": machine_info(), "figures": [asdict(one) for one in figures]}
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()

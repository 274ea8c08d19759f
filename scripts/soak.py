"""Ten million transitions through small buffers: after the first rounds, memory stays what it is.

``python -m scripts.soak`` adds them to buffers of both layouts on heaps with a limit and without, each in a process of
its own, prints what each process holds after the first rounds and at most afterwards, and fails if one grows.
Many environments per step make it a matter of minutes; every observation is still stored by itself.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from sb3_extra_buffers.codecs import names
from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.progress import progress_bar

#: Layout, heap and shape of an observation. Frames need an image; a cell as small as this one is still compressed.
CASES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "cells, memory": ("cells", "memory", (16,)),
    "cells, ring": ("cells", "ring", (16,)),
    "frames, memory": ("frames", "memory", (4, 6, 6)),
    "frames, ring": ("frames", "ring", (4, 6, 6)),
}
N_ENVS = 1000
#: How many transitions a buffer holds: a hundredth of ten million.
ROUND = 100_000
#: Memory may differ by so much between two looks: allocators keep some, and payloads are not all of one size.
SLACK_NBYTES = 4 << 20
_LOOKS = 20
#: By then, a ring has been written to its end: what it takes of its capacity grows until it is.
_ROUNDS_BEFORE = 6


@dataclass(frozen=True)
class Outcome:
    """Resident memory of a process, in bytes, and how many transitions went through.

    :param adds: how many were added
    :param seconds: in how much time
    :param first: after the first rounds
    :param most: at most afterwards
    """

    adds: int
    seconds: float
    first: int
    most: int

    @property
    def is_constant(self) -> bool:
        return self.most <= self.first + SLACK_NBYTES


def soak(case: str, adds: int, transitions: int = ROUND, n_envs: int = N_ENVS) -> Outcome:
    """Add transitions to one buffer, and look at the memory of this process after every few rounds.

    :param case: which buffer
    :param adds: how many transitions, at least
    :param transitions: how many the buffer holds
    :param n_envs: how many are added at a time
    """
    layout, heap, shape = CASES[case]
    space = spaces.Box(0, 255, shape, np.uint8)
    room = {"capacity": 32 * transitions} if heap == "ring" else None
    runs = "rle-jit" if "rle-jit" in names() else "rle"
    codec = runs if layout == "cells" else "auto"
    buffer = CompressedReplayBuffer(
        transitions,
        space,
        spaces.Discrete(2),
        "cpu",
        n_envs,
        compression_method=codec,
        layout=layout,
        heap=heap,
        heap_kwargs=room,
    )
    steps = -(-adds // n_envs)
    rows, rng, first, most = buffer.buffer_size, np.random.default_rng(0), 0, 0
    obs = _observations(rng, shape, n_envs)
    infos: list[dict[str, Any]] = [{}] * n_envs
    zeros, actions, begin = np.zeros(n_envs, np.float32), np.zeros((n_envs, 1), np.int64), time.perf_counter()
    every = max(rows, steps // _LOOKS)
    with progress_bar(case, steps) as advance:
        for step in range(1, steps + 1):
            following = _step(rng, obs)
            done = np.full(n_envs, step % 97 == 0)
            buffer.add(obs, following, actions, zeros, done, infos)
            obs = _observations(rng, shape, n_envs) if done[0] else following
            advance(1)
            if step % every == 0 or step == steps:
                buffer.sample(64)
                if step >= _ROUNDS_BEFORE * rows:
                    now = _resident()
                    first, most = first or now, max(most, now)
    return Outcome(steps * n_envs, time.perf_counter() - begin, first, most)


def _observations(rng: np.random.Generator, shape: tuple[int, ...], n_envs: int) -> Any:
    """What episodes begin with: observations of a few runs."""
    found = np.zeros((n_envs, *shape), np.uint8)
    found[:, ..., -1] = rng.integers(0, 256, found[:, ..., -1].shape)
    return found


def _step(rng: np.random.Generator, obs: Any) -> Any:
    """One frame further, or one pixel."""
    following = obs.copy()
    if obs.ndim == 4:
        following[:, :-1] = obs[:, 1:]
        following[np.arange(len(obs)), -1, rng.integers(0, 6, len(obs)), rng.integers(0, 6, len(obs))] ^= 3
    else:
        following[np.arange(len(obs)), rng.integers(0, obs.shape[1], len(obs))] ^= 1
    return following


def _resident() -> int:
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc, which keeps freed memory for itself
    if trim is not None:
        trim(0)
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:"))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adds", type=int, default=10_000_000, help="for each buffer (default: 10,000,000)")
    parser.add_argument("--only", choices=list(CASES), help="one of the buffers, in this process")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    least = 2 * _ROUNDS_BEFORE * ROUND
    if asked.adds < least:
        parser.error(f"--adds must be at least {least}: a buffer holds {ROUND}")
    if asked.json:
        print(json.dumps(vars(soak(asked.only, asked.adds))))
        return 0
    print(f"{'buffer':16} {'added':>12} {'per second':>12} {'first rounds':>12} {'at most':>12}")
    grown = 0
    for case in [asked.only] if asked.only else CASES:
        command = [sys.executable, "-m", "scripts.soak", "--adds", str(asked.adds), "--only", case, "--json"]
        root = Path(__file__).resolve().parents[1]  # where "scripts" is found
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=root)
        found = Outcome(**json.loads(done.stdout))
        grown += not found.is_constant
        rate, verdict = found.adds / found.seconds, "" if found.is_constant else "  grows"
        figures = f"{found.adds:12,} {rate:12,.0f} {found.first / 1e6:9.1f} MB {found.most / 1e6:9.1f} MB"
        print(f"{case:16} {figures}{verdict}", flush=True)
    return min(grown, 1)


if __name__ == "__main__":
    sys.exit(main())

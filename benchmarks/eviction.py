"""What does a heap with a budget cost frames? See ``python -m benchmarks.eviction --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from benchmarks._lib.atari import ACTION_SPACE, SCREEN, STACK, Transitions, stacked_frames
from benchmarks._lib.console import add_json_option, counted, positive, progress_bar, table_console
from benchmarks._lib.machine import machine_info
from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.errors import ExtraBuffersError

#: Frames that are played; a larger buffer repeats them.
_FRAMES = 20_000
_STEPS_PER_TIMING, _BATCHES_PER_TIMING = 64, 16


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, fill two buffers of each size, measure them in turn, and print a line for each size."""
    options = _options(arguments)
    torch.set_num_threads(1)
    console, content = table_console(), []
    try:
        with progress_bar() as progress, counted(progress, f"Playing {options.game}", _FRAMES) as report:
            played = stacked_frames(options.game, _FRAMES, progress=report)
        source = Transitions(np.ascontiguousarray(played.transpose(0, 3, 1, 2)), 1)
        for size in options.sizes:
            figures = measure(source, size, options.share, options.rounds)
            content.append(figures)
            console.print(described(figures), highlight=False)
    except ExtraBuffersError as error:
        sys.exit(f"error: {error}")
    if options.json is not None:
        options.json.write_text(json.dumps({"machine": machine_info(), "sizes": content}, indent=2) + "\n", "utf-8")


def measure(source: Transitions, transitions: int, share: float, rounds: int) -> dict[str, Any]:
    """Processor seconds of an ``add`` and of a ``sample(32)``, without a budget and with one that holds a share."""
    free = _full(source, transitions)
    budget = int(share * free.memory_report().live_nbytes)
    bounded = _full(source, transitions, heap="ring", heap_kwargs={"capacity": budget})
    seconds: dict[tuple[str, str], list[float]] = {}
    # A training run samples all along. After a million adds without a sample, the first one counts what is held.
    first = _timed(bounded.sample, 32)
    for _ in range(rounds):
        steps = [source.step() for _ in range(_STEPS_PER_TIMING)]
        for name, buffer in (("without", free), ("with", bounded)):
            adds = [_timed(buffer.add, *step) for step in steps]
            samples = [_timed(buffer.sample, 32) for _ in range(_BATCHES_PER_TIMING)]
            seconds.setdefault((name, "add"), []).extend(adds)
            seconds.setdefault((name, "sample"), []).extend(samples)
    # Means, because completing and evicting a chunk is rare and costly.
    kinds = {f"{what} {name}": float(np.mean(times)) for (name, what), times in seconds.items()}
    medians = {f"median {what} {name}": float(np.median(times)) for (name, what), times in seconds.items()}
    late = {f"p99 {what} {name}": float(np.percentile(times, 99)) for (name, what), times in seconds.items()}
    held = bounded.memory_report().transitions
    sizes = {"transitions": transitions, "held": held, "budget": budget}
    return {**sizes, "first sample": first, **kinds, **medians, **late}


def described(figures: dict[str, Any]) -> str:
    """The figures of one size in a line."""
    parts = [f"{figures['transitions']:>9,} transitions, {figures['held']:,} held in {figures['budget'] / 1e6:.1f} MB"]
    for what in ("add", "sample"):
        free, bounded = figures[f"{what} without"], figures[f"{what} with"]
        median = figures[f"median {what} with"] / figures[f"median {what} without"]
        late = figures[f"p99 {what} with"]
        parts.append(
            f"{what} {free * 1e6:.1f} µs without, {bounded * 1e6:.1f} with ({bounded / free:.2f} times; medians "
            f"{median:.2f} times; p99 {late * 1e6:.0f} µs)"
        )
    return "; ".join([*parts, f"first sample {figures['first sample'] * 1e3:.1f} ms"])


def _full(source: Transitions, transitions: int, **options: Any) -> CompressedReplayBuffer:
    space = spaces.Box(0, 255, (STACK, SCREEN, SCREEN), np.uint8)
    buffer = CompressedReplayBuffer(transitions, space, ACTION_SPACE, "cpu", layout="frames", **options)
    for _ in range(transitions + 100):
        buffer.add(*source.step())
    return buffer


def _timed(call: Callable[..., object], *arguments: Any) -> float:
    start = process_time()
    call(*arguments)
    return process_time() - start


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.eviction",
        description="Measure add and sample of frames on a ring that holds a part, beside a heap that grows.",
        epilog="example: python -m benchmarks.eviction --sizes 25000 1000000",
    )
    parser.add_argument("--game", default="Breakout", help="ALE game (default: %(default)s)")
    parser.add_argument("--sizes", nargs="+", type=positive, default=[25_000, 200_000, 1_000_000], metavar="N")
    parser.add_argument("--share", type=float, default=0.5, help="part that the ring holds (default: %(default)s)")
    parser.add_argument("--rounds", type=positive, default=100, help="repetitions (default: %(default)s)")
    add_json_option(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

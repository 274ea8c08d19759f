"""What does prioritized replay cost? See ``python -m benchmarks.prioritized --help``.

Atari transitions are drawn from one buffer by priority and uniformly. The calls alternate, so that a slow moment of the
machine affects both, and CPU time is counted. Sum trees are also timed alone, with each kind of kernels.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import torch as th
from rich import box
from rich.table import Table

from benchmarks._lib.atari import ACTION_SPACE, OBSERVATION_SPACE, Transitions, stacked_frames
from benchmarks._lib.console import add_json_option, counted, positive, progress_bar, table_console
from benchmarks._lib.machine import machine_info
from benchmarks._lib.measure import Stopwatch, median_of
from sb3_extra_buffers import sum_tree
from sb3_extra_buffers.compressed import CompressedPrioritizedReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.sum_tree import NumpyTreeKernels, SumTree, TreeKernels

_TRANSITIONS, _QUICK_TRANSITIONS = 1_000_000, 20_000
_ENVIRONMENTS = 8
#: Observations that are played; environments repeat them.
_PLAYED = 10_000
_NUMPY = "numpy"


def main(arguments: Sequence[str] | None = None) -> None:
    """Fill a buffer, time it, and print a table."""
    options = _options(arguments)
    th.set_num_threads(1)
    prioritized = _filled(options)
    results = {
        "transitions": options.transitions,
        "batch_size": options.batch_size,
        "seconds": {
            **_time_buffer(prioritized, options),
            **_time_trees(options),
        },
        "tree_bytes_per_transition": SumTree(options.transitions).nbytes / options.transitions,
    }
    _show(results)
    if options.json is not None:
        text = json.dumps({"machine": machine_info(), **results}, indent=2)
        options.json.write_text(text + "\n", encoding="utf-8")


def _filled(options: argparse.Namespace) -> CompressedPrioritizedReplayBuffer:
    with progress_bar() as progress:
        played = min(_PLAYED, options.transitions)
        with counted(progress, f"Playing {options.game}", played) as report:
            images = stacked_frames(options.game, played, progress=report)
        transitions = Transitions(np.ascontiguousarray(images.transpose(0, 3, 1, 2)), _ENVIRONMENTS)
        settings: dict[str, Any] = {"device": "cpu", "n_envs": _ENVIRONMENTS, "threads": 1}
        buffer = CompressedPrioritizedReplayBuffer(options.transitions, OBSERVATION_SPACE, ACTION_SPACE, **settings)
        steps = options.transitions // _ENVIRONMENTS
        with counted(progress, "Filling", steps) as report:
            for step in range(steps):
                buffer.add(*transitions.step())
                if step % 1000 == 0:
                    report(step)
    return buffer


def _time_buffer(prioritized: CompressedPrioritizedReplayBuffer, options: argparse.Namespace) -> dict[str, float]:
    rng, size = np.random.default_rng(0), options.batch_size
    # The same memory, with uniform draws.
    uniform = CompressedReplayBuffer.__new__(CompressedReplayBuffer)
    uniform.__dict__ = prioritized.__dict__
    # As after some training: priorities of all sizes.
    capacity = prioritized.buffer_size * prioritized.n_envs
    prioritized.update_priorities(np.arange(capacity), rng.exponential(size=capacity), 1.0)
    calls: dict[str, Callable[[], Any]] = {
        "uniform sample": lambda: uniform.sample(size),
        "prioritized sample": lambda: prioritized.sample(size),
    }
    samples = _cpu_medians(calls, options.rounds)
    drawn = cycle([prioritized.sample(size).leaf_nodes_indices for _ in range(64)])
    errors, updates = rng.exponential(size=size), {}
    for name, own in _kernels().items():
        prioritized._priorities.tree = tree = SumTree(capacity, own)
        tree.restore(rng.random(capacity))
        call = {"": lambda: prioritized.update_priorities(next(drawn), errors, 0.5)}
        updates[f"update_priorities, {name}"] = _cpu_medians(call, options.rounds)[""]
    return {**samples, **updates}


def _kernels() -> dict[str, TreeKernels]:
    """All kernels that are installed, by name."""
    return {_NUMPY: NumpyTreeKernels(), **{name: sum_tree.create(name) for name in sum_tree.registry.names()}}


def _time_trees(options: argparse.Namespace) -> dict[str, float]:
    """Sum trees alone, by kernels."""
    rng, size, count = np.random.default_rng(0), options.transitions, options.batch_size
    calls: dict[str, Callable[[], None]] = {}
    for name, own in _kernels().items():
        tree = SumTree(size, own)
        tree.fill(0, size, 1.0)

        def update(tree: SumTree = tree) -> None:
            tree.update(rng.integers(0, size, count), rng.random(count))

        def find(tree: SumTree = tree) -> None:
            tree.find(rng.random(count) * tree.total)

        calls |= {f"tree update, {name}": update, f"tree find, {name}": find}
    return _cpu_medians(calls, max(options.rounds, 20))


def _cpu_medians(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The median CPU time of each call in seconds. The calls alternate."""
    watches: dict[str, list[Stopwatch]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            watches[name].append(Stopwatch())
            with watches[name][-1]:
                call()
    return {name: median_of(found[1:]).cpu for name, found in watches.items()}  # the first one warms up


def _show(results: dict[str, Any]) -> None:
    title = f"{results['transitions']:,} transitions, batches of {results['batch_size']}"
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("call")
    table.add_column("CPU ms", justify="right")
    table.add_column("uniform = 1", justify="right")
    for name, seconds in results["seconds"].items():
        ratio = seconds / results["seconds"]["uniform sample"]
        table.add_row(name, f"{1000 * seconds:.3f}", f"{ratio:.2f}" if "sample" in name else "")
    console = table_console()
    console.print(table)
    console.print(
        f"memory of the tree: {results['tree_bytes_per_transition']:.2f} bytes per transition", highlight=False
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.prioritized", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--game", default="MsPacman", help="Atari game (default: %(default)s)")
    parser.add_argument("--transitions", type=positive, help=f"in each buffer (default: {_TRANSITIONS:,})")
    parser.add_argument("--batch-size", type=positive, default=256, help="default: %(default)s")
    parser.add_argument("--rounds", type=positive, help="timed calls of each kind (default: 300)")
    parser.add_argument("--quick", action="store_true", help=f"a short run with {_QUICK_TRANSITIONS:,} transitions")
    add_json_option(parser)
    options = parser.parse_args(arguments)
    options.transitions = options.transitions or (_QUICK_TRANSITIONS if options.quick else _TRANSITIONS)
    options.rounds = options.rounds or (10 if options.quick else 300)
    return options


if __name__ == "__main__":
    main()

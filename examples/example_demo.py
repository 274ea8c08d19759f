"""DQN learns a small image task from a compressed replay buffer, in a minute or two."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a file: import from the root of the checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples._lib.packages import required_packages

with required_packages():
    import torch
    from rich import box
    from rich.progress import Progress
    from rich.table import Table
    from stable_baselines3.common.buffers import ReplayBuffer

    from benchmarks._lib.console import positive, progress_bar, table_console
    from benchmarks._lib.plotting import check_plot_option
    from examples._lib.catch import BALLS
    from examples._lib.catch_learner import WARM_UP, RandomPlayer, make_learner, mean_return
    from examples._lib.demo import Run, train
    from examples._lib.training import add_seed_option, errors_in_one_line
    from sb3_extra_buffers.compressed import CompressedReplayBuffer

_STEPS = 20_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print and draw the returns and the memory of the buffer."""
    options = _options(arguments)
    # The network is small: a second thread costs more than it gains. One thread also makes runs reproducible.
    torch.set_num_threads(1)
    kwargs = {"compression_method": options.codec}
    with errors_in_one_line():
        make_learner(1, 0, CompressedReplayBuffer, kwargs)  # reports an unknown codec before the training
    console = table_console()
    console.print(f"A DQN learns to catch falling balls from images, {options.steps:,} steps …", highlight=False)
    random = mean_return(RandomPlayer(options.seed), options.seed)
    with progress_bar() as progress:
        run = _train(progress, "Training", options, CompressedReplayBuffer, kwargs)
        plain = _train(progress, "The same with SB3's buffer", options, ReplayBuffer, {}) if options.compare else None
    console.print(_table(run, random, plain))
    if plain is not None:
        same = plain.episodes == run.episodes
        verdict = "the same returns" if same else "different returns, which is a bug"
        console.print(f"With SB3's buffer and the same seed, {len(plain.episodes)} episodes had {verdict}.")
    from examples._lib.training_plots import plot_demo

    plot_demo(options.plot, run, random, plain)
    console.print(f"Picture: {options.plot.resolve()}", highlight=False, markup=False, soft_wrap=True)
    sys.exit(0 if plain is None or plain.episodes == run.episodes else 1)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python examples/example_demo.py",
        description="Train a DQN on a small image task with a compressed replay buffer, and show the returns and the "
        "memory of the buffer. For codecs on Atari frames, see example_eval_memory_saving.py.",
        epilog="example: python examples/example_demo.py --codec lz4-block/0 --compare --plot lz4.png",
    )
    steps = f"length of the training, at least {2 * WARM_UP:,} (default: %(default)s)"
    parser.add_argument("--steps", type=positive, default=_STEPS, help=steps)
    parser.add_argument("--codec", default="auto", help="such as zstd-3 or lz4-block/0 (default: chosen automatically)")
    add_seed_option(parser)
    compare = "train again with SB3's buffer and compare returns and memory; twice the time, and 57 kB per step"
    parser.add_argument("--compare", action="store_true", help=compare)
    picture = "file of the picture, .svg or .png (default: %(default)s)"
    parser.add_argument("--plot", type=Path, metavar="FILE", default=Path("demo.svg"), help=picture)
    options = parser.parse_args(arguments)
    if options.steps < 2 * WARM_UP:
        parser.error(f"--steps {options.steps}: it must be at least {2 * WARM_UP}")
    check_plot_option(parser, options.plot)
    return options


def _train(
    progress: Progress,
    label: str,
    options: argparse.Namespace,
    buffer_class: type[ReplayBuffer],
    buffer_kwargs: dict[str, str],
) -> Run:
    task = progress.add_task(label, total=options.steps)

    def report(step: int, caught: float) -> None:
        description = f"{label}: {caught:.1f} of {BALLS} caught"
        progress.update(task, completed=step, description=description, refresh=True)

    run = train(options.steps, options.seed, buffer_class, buffer_kwargs, report)
    progress.remove_task(task)
    return run


def _table(run: Run, random: float, plain: Run | None) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_header=False)
    table.add_column("what", no_wrap=True)
    table.add_column("figure", justify="right", no_wrap=True)
    table.add_column("remark")
    for label, caught in (("random player", random), ("before training", run.before), ("after training", run.after)):
        table.add_row(label, f"{caught:.1f} of {BALLS}", "balls caught, mean of 40 episodes")
    report, resident = run.report, run.memory[-1].value
    assert report is not None
    raw = report.raw_nbytes if plain is None else plain.memory[-1].value
    table.add_section()
    table.add_row("transitions kept", f"{report.transitions:,}", f"with {report.keys[0].codec}")
    table.add_row("SB3's buffer", f"{raw / 1e6:,.1f} MB", "calculated" if plain is None else "resident, measured")
    table.add_row("this buffer", f"{resident / 1e6:,.1f} MB", f"resident, measured: {resident / raw:.1%} of that")
    table.add_section()
    table.add_row(
        "training took", f"{run.seconds:,.0f} s", "" if plain is None else f"with SB3's: {plain.seconds:,.0f} s"
    )
    return table


if __name__ == "__main__":
    main()

"""What would it cost to keep this many observations of that game? See ``python -m examples.compare_codecs --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from benchmarks.atari import stacked_frames
from benchmarks.console import counted, progress_bar, table_console
from benchmarks.resident import measure_in_child
from examples.compare_measure import Cost, cost_of_array, cost_of_codec
from examples.plotting import check_plot_option
from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import ExtraBuffersError

# Its default level 9 stores at about a tenth of the speed.
_QUICKER = {"gzip": "gzip/1"}
_TRANSITIONS = 1_000_000


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, store the observations with each codec in a process of its own, and print what that took."""
    options = _options(arguments)
    try:
        chosen = options.codecs or [_QUICKER.get(name, name) for name in codecs.names()]
        for text in chosen:
            if (name := codecs.parse(text).name) not in codecs.names():
                codecs.registry.load(name)  # raises, and says what is installed
        array, costs, problems = _measure(options.game, options.observations, chosen)
    except ExtraBuffersError as error:
        sys.exit(f"error: {error}")
    console = table_console()
    title = f"{options.observations:,} observations of {options.game}: {array.payload / 1e6:,.1f} MB raw"
    console.print(_table(title, array, costs, problems))
    notes = ["Stored in rows of 8, read in random batches of 256 on as many threads as pay. MB/s are of raw frames."]
    if not options.codecs and "gzip" in codecs.names():
        notes.append("gzip is at level 1 here. Its default, 9, is smaller but far slower: --codecs gzip/9 shows it.")
    if costs:
        notes.append(_estimate(options.observations, array, costs[0]))
    console.print("\n".join(notes), highlight=False, markup=False)
    if options.plot is not None:
        from examples.compare_plot import plot_memory

        heading = f"Memory to keep {options.observations:,} observations of {options.game}"
        plot_memory(options.plot, heading, array, costs)
    sys.exit(1 if problems else 0)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.compare_codecs",
        description="Play an Atari game at random and show what it costs to keep the observations, codec by codec.",
        epilog="example: python -m examples.compare_codecs --game Pong --codecs zstd/3 lz4-block --plot pong.svg",
    )
    parser.add_argument("--game", default="MsPacman", help="name of an ALE game (default: %(default)s)")
    parser.add_argument("--observations", type=int, default=4000, help="how many to keep (default: %(default)s)")
    default = "every installed one at its default level, but gzip at level 1"
    parser.add_argument("--codecs", nargs="+", metavar="CODEC", help=f"codecs with levels (default: {default})")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw the memory, as .svg or .png")
    options = parser.parse_args(arguments)
    if options.plot is not None:
        check_plot_option(parser, options.plot)
    return options


def _measure(game: str, count: int, chosen: Sequence[str]) -> tuple[Cost, list[Cost], dict[str, str]]:
    """The plain array, the codecs from small to large, and for each that failed the reason."""
    costs, problems = [], {}
    with TemporaryDirectory() as folder, progress_bar() as progress:
        file = str(Path(folder, "observations.npy"))
        with counted(progress, f"Playing {game}", count) as report:
            np.save(file, stacked_frames(game, count, progress=report).reshape(count, -1))
        task = progress.add_task("Storing", total=len(chosen) + 1)
        progress.update(task, description="Storing: numpy array", refresh=True)
        array = measure_in_child(cost_of_array, file)
        for text in chosen:
            progress.update(task, description=f"Storing: {text}", advance=1, refresh=True)
            try:
                costs.append(measure_in_child(cost_of_codec, file, text))
            except Exception as error:  # whatever a codec does wrong, the others are still worth showing
                problems[text] = f"{type(error).__name__}: {error}"
    return array, sorted(costs, key=lambda cost: cost.resident), problems


def _table(title: str, array: Cost, costs: Sequence[Cost], problems: dict[str, str]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("codec", no_wrap=True)
    table.add_column("from")
    for heading in ("resident MB", "of raw", "ratio", "store MB/s", "read MB/s"):
        table.add_column(heading, justify="right", no_wrap=True)
    if problems:
        table.add_column("problem", overflow="fold")
    raw = array.payload
    for cost in (array, *costs):
        sizes = (f"{cost.resident / 1e6:,.2f}", f"{cost.resident / raw:.1%}", f"{raw / cost.payload:.1f}")
        speeds = (f"{raw / seconds / 1e6:,.0f}" for seconds in (cost.encode_seconds, cost.decode_seconds))
        table.add_row(cost.label, "numpy, as SB3" if cost is array else _origin(cost.label), *sizes, *speeds)
    for text, problem in problems.items():
        table.add_row(text, _origin(text), *["\N{EN DASH}"] * 5, Text(problem))  # as text: «[zstd]» is not markup
    return table


def _origin(text: str) -> str:
    return str(codecs.registry.offers()[codecs.parse(text).name][0])


def _estimate(count: int, array: Cost, least: Cost) -> str:
    # Payloads and index, not resident memory: that also has a constant part, which a few observations would inflate.
    here, there = ((cost.payload + cost.index) / count for cost in (least, array))
    gigabytes = [2 * _TRANSITIONS * nbytes / 1e9 for nbytes in (here, there)]
    return (
        f"Estimate, extrapolated from these {count:,} observations: with {least.label}, the smallest of those shown "
        f"({here:,.0f} bytes per observation), {_TRANSITIONS:,} such transitions, obs and next_obs stored "
        f"separately as SB3 does, would take about {gigabytes[0]:.1f} GB instead of {gigabytes[1]:.1f} GB."
    )


if __name__ == "__main__":
    main()

"""How small and how fast is each kind of observation? See ``python -m benchmarks.kinds --help``.

Real environments are played at random. For each kind, Stable-Baselines3's replay buffer and ours, in each setting, are
filled with the same transitions, each in a process of its own. The processes are asked in turn, so that a slow moment
of the machine counts for all. Every ratio is to Stable-Baselines3's buffer in the same run, and all must return the
same batches. Memory is the growth of the resident memory of a process; libraries are loaded before.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from gymnasium.error import DependencyNotInstalled
from rich import box
from rich.table import Table

from benchmarks._lib.console import add_json_option, counted, positive, progress_bar, table_console
from benchmarks._lib.kinds import KINDS, record, serve
from benchmarks._lib.machine import machine_info
from benchmarks._lib.measure import WrongBytesError
from benchmarks._lib.plotting import OURS, SB3, TEXT, check_plot_option, write_figure

PLAIN = "SB3"
SETTINGS: dict[str, dict[str, Any] | None] = {
    PLAIN: None,
    "default": {},
    "speed": {"prefer": "speed"},
    "balanced": {"prefer": "balanced"},
    "memory": {"prefer": "memory"},
}
OPERATIONS: dict[str, tuple[Any, ...]] = {
    "sample(32)": ("sample", 32),
    "sample(256)": ("sample", 256),
    "add": ("add",),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, measure, and print a table for each kind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kinds", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), help="default: all of them")
    settings = [name for name in SETTINGS if name != PLAIN]
    parser.add_argument("--settings", nargs="+", choices=settings, default=settings, help="default: all of them")
    parser.add_argument("--steps", type=positive, default=8_000, help="steps to play (default: %(default)s)")
    parser.add_argument(
        "--transitions", type=positive, default=50_000, help="size of the buffers; the game is repeated (%(default)s)"
    )
    parser.add_argument("--rounds", type=positive, default=60, help="requests of each operation (default: %(default)s)")
    parser.add_argument("--threads", type=positive, default=1, help="threads that decode (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the games (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="a short run: 400 steps, 800 transitions, 3 rounds")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw memory against time of a batch")
    add_json_option(parser)
    options = parser.parse_args(arguments)
    if options.plot is not None:
        check_plot_option(parser, options.plot)
    if options.quick:
        options.steps, options.transitions, options.rounds = 400, 800, 3
    console, found = table_console(), {}
    for name in options.kinds:
        kind = KINDS[name]
        try:
            figures = measure(name, options)
        except (ImportError, DependencyNotInstalled) as error:
            console.print(f"{kind.title}: left out ({error}). Run: pip install {kind.requires}", markup=False)
            continue
        found[name] = figures
        console.print(table(kind.title, figures))
    if options.json is not None:
        content = {"machine": machine_info(), "options": _plain(vars(options)), "kinds": found}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    if options.plot is not None and found:
        draw(found, options.plot)


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in ("json", "plot")}


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of one kind: for each setting its memory, the medians of its times, and what it says of itself.

    :param name: of the kind
    :param options: of the command line
    """
    context = get_context("spawn")
    with TemporaryDirectory() as text, progress_bar() as progress:
        folder = Path(text)
        record(KINDS[name], options.steps, folder, options.seed)
        ends, processes, figures = {}, [], {}
        try:
            for setting in (PLAIN, *options.settings):
                asked = SETTINGS[setting]
                if asked is not None:
                    asked = {**asked, "threads": options.threads}
                ends[setting], other = context.Pipe()
                process = context.Process(target=serve, args=(other, folder, asked, options.transitions), daemon=True)
                process.start()
                other.close()
                processes.append(process)
                # One after the other: memory is allocated in peace.
                figures[setting] = {"resident": _answer(ends[setting])}
            digests = {setting: _ask(end, "digest") for setting, end in ends.items()}
            if len(set(digests.values())) != 1:
                raise WrongBytesError(f"{name}: batches differ: {digests}")
            times: dict[str, dict[str, list[float]]] = {
                setting: {operation: [] for operation in OPERATIONS} for setting in ends
            }
            with counted(progress, name, options.rounds) as advance:
                for turn in range(options.rounds):
                    order = list(ends) if turn % 2 else list(reversed(ends))
                    for operation, request in OPERATIONS.items():
                        for setting in order:
                            times[setting][operation].append(_ask(ends[setting], *request))
                    advance(turn + 1)
            for setting, end in ends.items():
                figures[setting]["seconds"] = {operation: median(times[setting][operation]) for operation in OPERATIONS}
                figures[setting]["report"] = _ask(end, "describe")
        finally:
            for end in ends.values():
                end.close()
            for process in processes:
                process.join()
    return figures


def _ask(end: Any, *request: Any) -> Any:
    end.send(request)
    return _answer(end)


def _answer(end: Any) -> Any:
    answer = end.recv()
    if isinstance(answer, Exception):
        raise answer
    return answer


def ratios(figures: dict[str, Any], setting: str) -> dict[str, float]:
    """How many times less memory than Stable-Baselines3, and times as factors of its times."""
    plain, ours = figures[PLAIN], figures[setting]
    found = {"memory": plain["resident"] / max(ours["resident"], 1)}
    return found | {name: ours["seconds"][name] / plain["seconds"][name] for name in OPERATIONS}


def table(title: str, figures: dict[str, Any]) -> Table:
    """One kind as a table."""
    plain = figures[PLAIN]
    found = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for column in ("setting", "memory", "times less", *OPERATIONS):
        found.add_column(column, justify="left" if column == "setting" else "right")
    micro = [f"{plain['seconds'][name] * 1e6:,.0f} µs" for name in OPERATIONS]
    found.add_row(PLAIN, f"{plain['resident'] / 1e6:,.1f} MB", "1", *micro)
    for setting in figures:
        if setting != PLAIN:
            ratio = ratios(figures, setting)
            times = [f"{ratio[name]:.2f}" for name in OPERATIONS]
            memory = f"{figures[setting]['resident'] / 1e6:,.1f} MB"
            found.add_row(setting, memory, f"{ratio['memory']:,.1f}", *times)
    return found


def draw(found: dict[str, Any], file: Path) -> None:
    """A point for each kind and setting: time of a batch against memory, both as factors of Stable-Baselines3's."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.2 + 1.5 * -(-len(found) // 3)), layout="constrained")
    columns = min(3, len(found))
    axes = figure.subplots(-(-len(found) // columns), columns, squeeze=False, sharex=True, sharey=True)
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    for axis, (name, figures) in zip(axes.flat, found.items()):
        axis.set_title(KINDS[name].title, fontsize=8, color=TEXT, loc="left")
        axis.axvline(1, color=SB3, linewidth=0.8)
        axis.axhline(1, color=SB3, linewidth=0.8)
        for setting in figures:
            if setting in (PLAIN, "default"):
                continue
            ratio = ratios(figures, setting)
            is_default = figures["default"]["report"] == figures[setting]["report"] if "default" in figures else False
            axis.plot(ratio["sample(32)"], ratio["memory"], "o", color=OURS, markersize=7 if is_default else 4)
            axis.annotate(setting, (ratio["sample(32)"], ratio["memory"]), fontsize=7, color=TEXT, xytext=(4, 3),
                          textcoords="offset points")  # fmt: skip
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.tick_params(labelsize=7)
    figure.supxlabel("time of a batch of 32 (SB3 = 1, left is faster)", fontsize=8, color=TEXT)
    figure.supylabel("times less memory than SB3", fontsize=8, color=TEXT)
    write_figure(figure, file)


if __name__ == "__main__":
    main()

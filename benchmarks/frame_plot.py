"""The growth of the frame store as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.frame_growth import Point
from examples.plotting import OURS, SB3, SUBTLE, TEXT, write_figure

_RAW_NBYTES = 2 * 4 * 84 * 84


def draw_growth(points: Sequence[Point], game: str, file: Path) -> None:
    """Memory, add and sample over the number of transitions.

    :param points: what was measured
    :param game: what was played
    :param file: where to; ``.svg`` or ``.png``
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="constrained")
    memory, add, sample = figure.subplots(1, 3)
    sizes = [point.transitions for point in points]
    memory.loglog(sizes, [size * _RAW_NBYTES / 1e6 for size in sizes], "--", color=SB3, label="SB3 (computed)")
    memory.loglog(sizes, [point.resident / 1e6 for point in points], "o-", color=OURS, label="frames")
    memory.set_title("resident memory, MB", color=TEXT, fontsize=10)
    memory.legend(frameon=False, fontsize=9)
    for axes, values, title in (
        (add, [point.add * 1e6 for point in points], "add, µs per transition"),
        (sample, [point.sample * 1e6 for point in points], "sample(32), µs"),
    ):
        axes.semilogx(sizes, values, "o-", color=OURS)
        axes.set_ylim(0, 1.6 * max(values))
        axes.set_title(title, color=TEXT, fontsize=10)
    for axes in (memory, add, sample):
        axes.set_xlabel("transitions", color=SUBTLE)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    figure.suptitle(f"{game}: cost of the frame store over its size", color=TEXT, fontsize=11)
    write_figure(figure, file)

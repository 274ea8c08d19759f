"""A picture of advice: memory against time."""

from __future__ import annotations

from pathlib import Path

from sb3_extra_buffers.advisor.advice import Advice
from sb3_extra_buffers.advisor.measuring import Measured
from sb3_extra_buffers.advisor.verdict import cost_s
from sb3_extra_buffers.compressed.options import CELLS
from sb3_extra_buffers.compressed.report import readable
from sb3_extra_buffers.errors import MissingExtraError

_PLAIN, _CELLS, _FRAMES, _CHOSEN = "#888888", "#c44e52", "#4c72b0", "#2a9d5c"


def draw(advice: Advice, path: Path) -> None:
    """
    Write a picture: each way to store by its time, relative to Stable-Baselines3's buffer, and its memory.

    Points are numbered, and named beside the picture: the best lie close together.

    :param advice: what was measured
    :param path: the file; its ending says the format
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
    except ImportError as error:
        raise MissingExtraError("A plot", "matplotlib", "cli") from error
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    plain = cost_s(advice.plain)
    points = [(cost_s(one) / plain, one.nbytes(advice.transitions)) for one in advice.ranked]
    front = [point for one, point in zip(advice.ranked, points) if one in advice.verdict.front]
    axes.step(*zip(*front), where="post", color=_CHOSEN, alpha=0.4, linewidth=2, zorder=1)
    for number, (one, (time, nbytes)) in enumerate(zip(advice.ranked, points), 1):
        is_chosen = one is advice.verdict.chosen
        name = f"{number}  {one.candidate.name}, {readable(nbytes)}{' (recommended)' if is_chosen else ''}"
        axes.scatter(time, nbytes, s=190 if is_chosen else 110, color=_color(one, is_chosen), zorder=2, label=name)
        axes.annotate(str(number), (time, nbytes), ha="center", va="center", color="white", fontsize=7, zorder=3)
    axes.axvline(1, color=_PLAIN, linestyle=":", linewidth=1, zorder=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.1, y=0.1)
    for axis, form in ((axes.xaxis, "{:g}".format), (axes.yaxis, readable)):
        axis.set_major_formatter(FuncFormatter(lambda value, _, form=form: form(value)))
        axis.set_minor_formatter(NullFormatter())
    # Times differ by little: the decades alone would be one label or two.
    axes.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    axes.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel(f"time of add and, every 4th step, sample({advice.batch_size}), relative to Stable-Baselines3")
    axes.set_ylabel(f"memory of {advice.transitions:,} transitions")
    axes.set_title(advice.stream.label)
    axes.grid(which="both", alpha=0.2)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8, frameon=False, markerscale=0.6)
    figure.savefig(path, dpi=150)


def _color(one: Measured, is_chosen: bool) -> str:
    if is_chosen:
        return _CHOSEN
    if one.candidate.is_plain:
        return _PLAIN
    return _CELLS if one.candidate.name.startswith(CELLS) else _FRAMES

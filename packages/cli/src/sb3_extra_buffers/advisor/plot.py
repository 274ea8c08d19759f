"""A picture of advice: memory against time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sb3_extra_buffers.advisor.advice import Advice
from sb3_extra_buffers.advisor.candidates import PLAIN
from sb3_extra_buffers.advisor.measuring import RAW
from sb3_extra_buffers.advisor.ticks import sizes, ticks
from sb3_extra_buffers.compressed.options import CELLS, FRAMES
from sb3_extra_buffers.compressed.report import readable
from sb3_extra_buffers.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: By what was stored, whatever it was called: «auto» may come to any of them.
_COLORS = {FRAMES: "#4c72b0", CELLS: "#c44e52", RAW: "#8172b3", PLAIN: "#888888"}
_CHOSEN = "#2a9d5c"
_LEGEND = "blue: frames, red: cells, purple: no codec, gray: SB3\ngreen ring: recommended"


def draw(advice: Advice, path: Path) -> None:
    """
    Write a picture: each way to store by its time, relative to Stable-Baselines3's buffer, and its memory.

    Points are numbered, and named beside the picture: the best lie close together.

    :param advice: what was measured
    :param path: the file; its ending says the format
    """
    picture(advice.as_json()).savefig(path, dpi=150)


def picture(figures: Mapping[str, Any]) -> Figure:
    """The same from figures that may have been written long ago.

    :param figures: what ``Advice.as_json`` made
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("A plot", "matplotlib", "cli") from error
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.1, y=0.1)
    front = [_place(one) for one in figures["measured"] if one["on_pareto_front"]]
    # From one point up, then to the left: for less time there is nothing smaller than the next one.
    axes.step(*zip(*front), where="pre", color=_CHOSEN, alpha=0.4, linewidth=2, zorder=1)
    for number, one in enumerate(figures["measured"], 1):
        _draw_point(axes, number, one, one["name"] == figures["recommended"])
    axes.axvline(1, color=_COLORS[PLAIN], linestyle=":", linewidth=1, zorder=0)
    _label(axes.xaxis, axes.get_xlim(), lambda places: [f"{place:g}" for place in places])
    _label(axes.yaxis, axes.get_ylim(), sizes)
    batch = f"sample({figures['batch_size']})"
    axes.set_xlabel(f"time of add and, every 4th step, {batch}, relative to Stable-Baselines3")
    axes.set_ylabel(f"memory of {figures['planned_transitions']:,} transitions")
    axes.set_title(figures["stream"]["label"])
    axes.grid(alpha=0.2)
    placed: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
    axes.legend(**placed, title=_LEGEND, title_fontsize=7, fontsize=8, frameon=False, markerscale=0.6)
    return figure


def _place(one: Mapping[str, Any]) -> tuple[float, float]:
    return one["cost_to_sb3"], one["nbytes"]


def _draw_point(axes: Axes, number: int, one: Mapping[str, Any], is_chosen: bool) -> None:
    name = f"{number}  {one['name']}, {readable(one['nbytes'])}{' (recommended)' if is_chosen else ''}"
    ring: dict[str, Any] = {"edgecolors": _CHOSEN, "linewidths": 2} if is_chosen else {}
    color = _COLORS[one["stored_as"]]
    axes.scatter(*_place(one), s=230 if is_chosen else 110, color=color, zorder=2, label=name, **ring)
    axes.annotate(str(number), _place(one), ha="center", va="center", color="white", fontsize=7, zorder=3)


def _label(axis: Any, limits: tuple[float, float], form: Callable[[Sequence[float]], list[str]]) -> None:
    places = ticks(*limits)
    axis.set_ticks(places, form(places))
    axis.set_ticks([], minor=True)

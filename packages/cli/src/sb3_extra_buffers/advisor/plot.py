"""Plots of advice: memory against time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sb3_extra_buffers.advisor.advice import Advice
from sb3_extra_buffers.advisor.measurement import PLAIN, RAW
from sb3_extra_buffers.compressed.options import CELLS, FRAMES
from sb3_extra_buffers.compressed.report import UNITS, readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: By what was stored, not by name: "auto" may be any of them.
_COLORS = {FRAMES: "#4c72b0", CELLS: "#c44e52", RAW: "#8172b3", PLAIN: "#888888"}
_CHOSEN = "#2a9d5c"
#: Steps within a decade; the first that gives enough labels is taken.
_STEPS = ((1,), (1, 2, 5), (1, 2, 3, 4, 5, 6, 8))
_MIN_TICKS = 3
_MAX_DECIMALS = 15
_LEGEND = "blue: frames, red: cells, purple: no codec, gray: SB3\ngreen ring: recommended"


def draw(advice: Advice, path: Path) -> None:
    """Plot each way to store by its time, relative to Stable-Baselines3's buffer, and its memory.

    Points are numbered and named in the legend, because the best are close together.

    :param path: the file; its suffix selects the format
    """
    picture(advice.as_json()).savefig(path, dpi=150)


def picture(figures: Mapping[str, Any]) -> Figure:
    """The plot of :func:`draw` as a matplotlib figure, from saved measurements.

    :param figures: from ``Advice.as_json``
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.margins(x=0.1, y=0.1)
    front = [(one["cost_to_sb3"], one["nbytes"]) for one in figures["measured"] if one["on_pareto_front"]]
    # Up from each point, then left: in less time, nothing is smaller than the next point.
    axes.step(*zip(*front), where="pre", color=_CHOSEN, alpha=0.4, linewidth=2, zorder=1)
    for number, one in enumerate(figures["measured"], 1):
        _draw_point(axes, number, one, one["name"] == figures["recommended"])
    axes.axvline(1, color=_COLORS[PLAIN], linestyle=":", linewidth=1, zorder=0)
    x_ticks, y_ticks = ticks(*axes.get_xlim()), ticks(*axes.get_ylim())
    axes.set_xticks(x_ticks, [f"{tick:g}" for tick in x_ticks])
    axes.set_yticks(y_ticks, sizes(y_ticks))
    axes.minorticks_off()
    batch = f"sample({figures['batch_size']})"
    axes.set_xlabel(f"time of add and, every 4th step, {batch}, relative to Stable-Baselines3")
    axes.set_ylabel(f"memory of {figures['planned_transitions']:,} transitions")
    axes.set_title(figures["stream"]["label"])
    axes.grid(alpha=0.2)
    placed: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
    axes.legend(**placed, title=_LEGEND, title_fontsize=7, fontsize=8, frameon=False, markerscale=0.6)
    return figure


def _draw_point(axes: Axes, number: int, one: Mapping[str, Any], is_chosen: bool) -> None:
    name = f"{number}  {one['name']}, {readable(one['nbytes'])}{' (recommended)' if is_chosen else ''}"
    ring: dict[str, Any] = {"edgecolors": _CHOSEN, "linewidths": 2} if is_chosen else {}
    color, point = _COLORS[one["stored_as"]], (one["cost_to_sb3"], one["nbytes"])
    axes.scatter(*point, s=230 if is_chosen else 110, color=color, zorder=2, label=name, **ring)
    axes.annotate(str(number), point, ha="center", va="center", color="white", fontsize=7, zorder=3)


def ticks(low: float, high: float) -> list[float]:
    """At least three round numbers within the positive range of a logarithmic axis."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in _STEPS:
        found = [place for decade in decades for step in steps if low <= (place := step * 10.0**decade) <= high]
        if len(found) >= _MIN_TICKS:
            return found
    # The range is so short that it is nearly linear.
    wide = (high - low) / _MIN_TICKS
    decade = 10.0 ** math.floor(math.log10(wide))
    step = max(number * decade for number in (1, 2, 5) if number * decade <= wide)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def sizes(places: Sequence[float]) -> list[str]:
    """Labels of sizes in ascending order, with enough decimals to be exact and different."""
    if places[-1] >= 10 * places[0]:  # round numbers: one decimal and a unit each are enough
        return [readable(place) for place in places]
    power = min(max(0, math.floor(math.log10(places[-1]) / 3)), len(UNITS) - 1)
    shown = [place / 1000**power for place in places]
    for decimals in range(1 if power else 0, _MAX_DECIMALS):
        if all(math.isclose(round(number, decimals), number, rel_tol=1e-9) for number in shown):
            break
    return [f"{number:.{decimals}f} {UNITS[power]}" for number in shown]

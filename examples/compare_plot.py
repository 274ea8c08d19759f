"""What each codec takes, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from examples.compare_measure import Cost
from examples.plotting import OURS, SB3, SUBTLE, TEXT, write_figure

_SUBTITLE = "resident memory of a process that holds them; in brackets: share of the plain numpy array"
_ROOM_FOR_LABELS = 0.25


def plot_memory(file: Path, title: str, array: Cost, costs: Sequence[Cost]) -> None:
    """Write a horizontal bar chart of resident memory, one bar per codec under that of the plain array.

    :param file: where to; the ending decides on the format
    :param title: what was stored
    :param array: the plain array
    :param costs: the codecs, in the order of the bars
    """
    bars = [array, *costs]
    positions, megabytes = range(len(bars)), [cost.resident / 1e6 for cost in bars]
    layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.15)
    figure = Figure(figsize=(8, 1.3 + 0.36 * len(bars)), layout=layout)
    axes = figure.add_subplot()
    drawn = axes.barh(positions, megabytes, color=[SB3, *[OURS] * len(costs)], height=0.7)
    # Every bar says its size, so neither an axis nor grid lines are needed to read it off.
    labels = [f"{size:,.{1 if size > 1 else 2}f} MB  ({size / megabytes[0]:.1%})" for size in megabytes]
    axes.bar_label(drawn, labels, padding=6, color=TEXT, fontsize=10)
    axes.set_yticks(positions, [cost.label for cost in bars], color=TEXT, fontsize=11)
    axes.tick_params(length=0)
    axes.invert_yaxis()
    axes.margins(x=_ROOM_FOR_LABELS, y=0.01)
    axes.set_xlim(left=0)
    axes.set_xticks([])
    axes.spines[:].set_visible(False)
    axes.set_title(title, loc="left", pad=28, color=TEXT, fontsize=14, fontweight="bold")
    axes.annotate(_SUBTITLE, (0, 1), (0, 10), "axes fraction", "offset points", color=SUBTLE, fontsize=10)
    write_figure(figure, file)

"""Buffers by what they take and how long that takes, as a picture: the lower left corner is the best."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from benchmarks.buffer_building import FRAMES
from benchmarks.buffer_building import SB3 as PLAIN
from examples.label_places import places
from examples.plotting import LEARNT, OURS, SB3, SUBTLE, TEXT, write_figure
from sb3_extra_buffers import codecs

#: The rest of the palette of ``examples.plotting``; each codec has a mark of its own besides.
_STYLES = {
    "frames": (LEARNT, "*"),
    "zstd": (OURS, "o"),
    "lz4-block": ("#009E73", "s"),
    "lz4-frame": ("#56B4E9", "D"),
    "igzip": ("#E69F00", "^"),
    "gzip": ("#B8A800", "v"),
    "rle": ("#CC79A7", "P"),
    "rle-jit": ("#CC79A7", "X"),
    "none": (TEXT, "h"),
    PLAIN: (SB3, "p"),
}
#: The room for the marks, in points; the legend stands beside it.
_ROOM = np.array([590.0, 400.0])


class Point(NamedTuple):
    """One buffer.

    :param name: a codec with its level, ``"frames/…"``, or ``"SB3"``
    :param x: how long
    :param y: how much
    """

    name: str
    x: float
    y: float


def plot_points(file: Path, title: str, axis_labels: tuple[str, str], points: Sequence[Point]) -> None:
    """A mark for each buffer, joined by a line for each codec; the numbers are levels.

    :param file: where to; the ending decides on the format
    :param title: what was stored
    :param axis_labels: what is on the axes
    :param points: of all buffers
    """
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    for family, (colour, marker) in _STYLES.items():
        own = sorted((point for point in points if _family(point.name) == family), key=_level)
        if own:
            xs, ys = [point.x for point in own], [point.y for point in own]
            axes.plot(xs, ys, marker, color=colour, markersize=13 if family == "frames" else 7, label=family, zorder=3)
            axes.plot(xs, ys, color=colour, linewidth=0.8, alpha=0.4)
    axes.set_title(title, loc="left", color=TEXT, fontsize=13, fontweight="bold")
    axes.set_xlabel(axis_labels[0], color=SUBTLE)
    axes.set_ylabel(axis_labels[1], color=SUBTLE)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=SUBTLE)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:,g}")
        axis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.25)
    axes.margins(0.08)
    axes.legend(title="numbers: levels", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    _label(axes, points)
    write_figure(figure, file)


def _family(name: str) -> str:
    return PLAIN if name.startswith(PLAIN) else "frames" if name.startswith(FRAMES) else codecs.parse(name).name


def _level(point: Point) -> float:
    """By which the points of a codec are joined; frames from large to small."""
    if _family(point.name) in (PLAIN, "frames"):
        return -point.y
    return float(codecs.parse(point.name).params.get("level") or 0)


def _text(point: Point) -> str:
    family = _family(point.name)
    if family == "frames":
        return point.name.removeprefix(FRAMES)
    # What has no levels is known by its mark.
    return f"{_level(point):g}" if point.name != family else ""


def _label(axes: Axes, points: Sequence[Point]) -> None:
    corners = np.log10([axes.get_xlim(), axes.get_ylim()]).T
    marks = np.log10([(point.x, point.y) for point in points])
    texts = [_text(point) for point in points]
    for point, text, place in zip(points, texts, places((marks - corners[0]) / np.ptp(corners, axis=0) * _ROOM, texts)):
        colour = _STYLES[_family(point.name)][0]
        axes.annotate(text, (point.x, point.y), place, textcoords="offset points", color=colour, fontsize=9)

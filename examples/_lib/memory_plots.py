"""Pictures of memory: buffers by time and size, and Doom with its masks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

from benchmarks._lib.buffers import FRAMES
from benchmarks._lib.buffers import SB3 as PLAIN
from benchmarks._lib.doom import CLASSES, SHADES
from benchmarks._lib.game_recording import Recording
from benchmarks._lib.plotting import LEARNT, OURS, SB3, SUBTLE, TEXT, write_figure
from examples._lib.contenders import Saving
from sb3_extra_buffers import codecs

#: Colour and mark of each codec.
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
#: Size of the plot in points, without the legend.
_ROOM = np.array([590.0, 400.0])
#: Size of a letter of nine points, in points.
_WIDTH, _HEIGHT = 5.6, 9.0
_MARK = 5.0
#: Offsets of a label from its mark, in order of preference.
_OFFSETS = tuple(
    (side * reach, height)
    for reach, height in ((7, 3), (7, -9), (3, 8), (3, -15), (12, 12), (12, -20), (22, 2), (22, 20), (26, -26))
    for side in (1, -1)
)
_COLOURS = ("#4d4d4d", "#c8c8c8", "#56B4E9", LEARNT, "#009E73", "#F0E442", "#CC79A7", "#7a3b00", "#ffffff")
_ROOM_FOR_LABELS = 0.4
_LABELS = {"rgb": "RGB", "mask": "masks"}


class Point(NamedTuple):
    """One buffer.

    :param name: a codec with its level, ``"frames/…"``, or ``"SB3"``
    :param x: time
    :param y: size
    """

    name: str
    x: float
    y: float


def plot_points(file: Path, title: str, axis_labels: tuple[str, str], points: Sequence[Point]) -> None:
    """Draw time against size: a mark for each buffer, a line for each codec; numbers are levels.

    :param file: the picture, .svg or .png
    :param title: title of the picture
    :param axis_labels: labels of both axes
    :param points: all buffers
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
    """Order of the points of a codec; frames from large to small."""
    if _family(point.name) in (PLAIN, "frames"):
        return -point.y
    return float(codecs.parse(point.name).params.get("level") or 0)


def _text(point: Point) -> str:
    family = _family(point.name)
    if family == "frames":
        return point.name.removeprefix(FRAMES)
    # A codec without levels is known by its mark.
    return f"{_level(point):g}" if point.name != family else ""


def _label(axes: Axes, points: Sequence[Point]) -> None:
    corners = np.log10([axes.get_xlim(), axes.get_ylim()]).T
    marks = np.log10([(point.x, point.y) for point in points])
    texts = [_text(point) for point in points]
    for point, text, place in zip(points, texts, places((marks - corners[0]) / np.ptp(corners, axis=0) * _ROOM, texts)):
        colour = _STYLES[_family(point.name)][0]
        axes.annotate(text, (point.x, point.y), place, textcoords="offset points", color=colour, fontsize=9)


def places(marks: NDArray[np.float64], texts: Sequence[str]) -> list[tuple[float, float]]:
    """The lower left corner of each label, relative to its mark, in points.

    Each label is placed where it covers the least of the marks and of the labels before it.

    :param marks: shape ``(n, 2)``
    :param texts: one for each mark; an empty text covers nothing
    """
    taken = [_box(x - _MARK, y - _MARK, 2 * _MARK, 2 * _MARK) for x, y in marks]
    found: list[tuple[float, float]] = []
    for (x, y), text in zip(marks, texts):
        width = _WIDTH * len(text)
        corners = [(dx if dx > 0 else dx - width, dy) for dx, dy in _OFFSETS]
        boxes = [_box(x + dx, y + dy, width, _HEIGHT) for dx, dy in corners]
        covered = [sum(_common(box, other) for other in taken) for box in boxes]
        best = int(np.argmin(covered))
        if text:
            taken.append(boxes[best])
        found.append(corners[best])
    return found


def _box(x: float, y: float, width: float, height: float) -> tuple[float, float, float, float]:
    return x, y, x + width, y + height


def _common(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> float:
    """The area that both boxes cover."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0) * max(height, 0)


def plot_doom(file: Path, folder: str, scenario: str, results: Mapping[str, Sequence[Saving]]) -> None:
    """Draw one frame with its mask, and the memory of all buffers.

    :param file: the picture, .svg or .png
    :param folder: has a recording for each kind of observation
    :param scenario: the scenario
    :param results: results by kind of observation
    """
    picture, mask = _moment(folder)
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(2, 3))
    above, below = (figure.add_subplot(grid[row, 0]) for row in range(2))
    _draw_view(above, picture, f"{scenario}: picture")
    _draw_view(below, np.array([to_rgb(colour) for colour in _COLOURS])[mask], "mask of object classes")
    seen = [Patch(color=_COLOURS[number], label=CLASSES[number]) for number in np.unique(mask)]
    below.legend(handles=seen, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.02), frameon=False, fontsize=8)
    _draw_memory(figure.add_subplot(grid[:, 1]), results)
    write_figure(figure, file)


def _moment(folder: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The picture with the most classes, and the class of each of its pixels."""
    masks = Recording(str(Path(folder, "mask"))).observations[:, 0, 0]
    classes = np.array([len(np.unique(mask)) for mask in masks])
    number = int(classes.argmax())
    picture = Recording(str(Path(folder, "rgb"))).observations[number, 0].transpose(1, 2, 0)
    return picture, np.searchsorted(SHADES, masks[number])


def _draw_view(axes: Axes, image: NDArray[np.generic], title: str) -> None:
    axes.imshow(image)
    axes.set_title(title, loc="left", color=TEXT, fontsize=10)
    axes.set_axis_off()


def _draw_memory(axes: Axes, results: Mapping[str, Sequence[Saving]]) -> None:
    savings = [(observe, saving) for observe, group in results.items() for saving in group]
    labels = [f"{_LABELS[observe]}, {saving.name}" for observe, saving in savings]
    gigabytes = [saving.resident / saving.transitions * 1e6 / 1e9 for _, saving in savings]
    colours = [SB3 if saving.name == PLAIN else OURS for _, saving in savings]
    positions = range(len(savings))
    drawn = axes.barh(positions, gigabytes, color=colours, height=0.7)
    texts = [f"{size:,.{1 if size > 1 else 2}f} GB  ({size / gigabytes[0]:.1%})" for size in gigabytes]
    axes.bar_label(drawn, texts, padding=6, color=TEXT, fontsize=9)
    axes.margins(x=_ROOM_FOR_LABELS)
    axes.set_xticks([])
    axes.set_yticks(positions, labels, color=TEXT, fontsize=10)
    axes.tick_params(length=0)
    axes.invert_yaxis()
    axes.spines[:].set_visible(False)
    title = "One million transitions of 160 x 120 pixels"
    axes.set_title(title, loc="left", pad=26, color=TEXT, fontsize=13, fontweight="bold")
    subtitle = "extrapolated from resident memory; grey: SB3's own buffer"
    axes.annotate(subtitle, (0, 1), (0, 10), "axes fraction", "offset points", color=SUBTLE, fontsize=9)

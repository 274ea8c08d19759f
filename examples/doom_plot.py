"""A frame of Doom, its mask, and what it takes to keep many of them, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from benchmarks.buffer_building import SB3 as PLAIN
from benchmarks.played import Recording
from examples.doom_env import CLASSES, SHADES
from examples.eval_saving_measure import Saving
from examples.plotting import LEARNT, OURS, SB3, SUBTLE, TEXT, write_figure

_COLOURS = ("#4d4d4d", "#c8c8c8", "#56B4E9", LEARNT, "#009E73", "#F0E442", "#CC79A7", "#7a3b00", "#ffffff")
_ROOM_FOR_LABELS = 0.4
_LABELS = {"rgb": "RGB", "mask": "masks"}


def plot_doom(file: Path, folder: str, scenario: str, results: Mapping[str, Sequence[Saving]]) -> None:
    """Draw what was seen at one moment, and the memory of all buffers.

    :param file: where to; the ending decides on the format
    :param folder: with a recording for each kind of observation
    :param scenario: what was played
    :param results: by kind of observation
    """
    picture, mask = _moment(folder)
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(2, 3))
    above, below = (figure.add_subplot(grid[row, 0]) for row in range(2))
    _draw_view(above, picture, f"{scenario}: what the player sees")
    _draw_view(below, np.array([to_rgb(colour) for colour in _COLOURS])[mask], "what that is")
    seen = [Patch(color=_COLOURS[number], label=CLASSES[number]) for number in np.unique(mask)]
    below.legend(handles=seen, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.02), frameon=False, fontsize=8)
    _draw_memory(figure.add_subplot(grid[:, 1]), results)
    write_figure(figure, file)


def _moment(folder: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The picture with the most classes in it, and the number of the class of each of its pixels."""
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

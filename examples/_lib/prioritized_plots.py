"""Pictures of prioritized against uniform replay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks._lib.plotting import OURS, SB3, SUBTLE, write_figure
from examples._lib.catch import BALLS
from examples._lib.prioritized import PRIORITIZED, REPLAYS, UNIFORM, Curve, Walk
from examples._lib.training_plots import running_mean

_COLOURS = {UNIFORM: SB3, PRIORITIZED: OURS}
#: Points of a mean curve.
_POINTS = 60


def draw_comparison(walks: Sequence[Walk], curves: Sequence[Curve], file: Path) -> None:
    """Draw the updates that cliffwalks took, and the returns of Catch.

    :param walks: of both kinds of replay
    :param curves: of both kinds of replay
    :param file: the picture, .svg or .png
    """
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_walks(left, walks)
    _draw_curves(right, curves)
    write_figure(figure, file)


def _draw_walks(axes: Axes, walks: Sequence[Walk]) -> None:
    for replay in REPLAYS:
        found = [walk for walk in walks if walk.replay == replay]
        sizes = sorted({walk.states for walk in found})
        updates = [[walk.updates for walk in found if walk.states == size] for size in sizes]
        transitions = [2 ** (size + 1) - 2 for size in sizes]
        axes.plot(transitions, [np.median(part) for part in updates], "o-", color=_COLOURS[replay], label=replay)
        for size, part in zip(transitions, updates):
            axes.plot([size] * len(part), part, ".", color=_COLOURS[replay], alpha=0.3, markeredgewidth=0)
    axes.set(xscale="log", yscale="log", xlabel="transitions in the buffer", ylabel="updates until learnt")
    axes.set_title("Blind cliffwalk: median of the seeds, and each seed", loc="left", fontsize=10)
    _finish(axes)


def _draw_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    for replay in REPLAYS:
        found = [curve for curve in curves if curve.replay == replay]
        if not found:
            continue
        end = min(curve.episodes[-1][0] for curve in found)
        begin = max(curve.episodes[min(5, len(curve.episodes) - 1)][0] for curve in found)
        steps = np.linspace(begin, end, _POINTS)
        means = []
        for curve in found:
            at, returns = np.array(curve.episodes).T
            smooth = running_mean(returns)
            axes.plot(at, smooth, color=_COLOURS[replay], alpha=0.3, linewidth=0.8)
            means.append(np.interp(steps, at, smooth))
        axes.plot(steps, np.mean(means, axis=0), color=_COLOURS[replay], linewidth=2.2, label=replay)
    axes.set(xlabel="steps", ylabel=f"balls caught, of {BALLS}", ylim=(0, BALLS + 0.3))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_title("Catch, from images: mean of the seeds, and each seed", loc="left", fontsize=10)
    _finish(axes)


def _finish(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=SUBTLE, alpha=0.2, linewidth=0.6)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)

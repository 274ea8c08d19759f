"""Curves of trainings that differ in the buffer, drawn over each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from examples.demo_plot import running_mean
from examples.demo_training import WINDOW
from examples.learning_pair import Pair
from examples.learning_run import Curve
from examples.learning_tasks import TASKS
from examples.plotting import LEARNT, OURS, SUBTLE, TEXT, write_figure

#: One for each seed.
_COLOURS = (LEARNT, OURS, "#009E73", "#CC79A7")
_FEWEST = 5


def draw_curves(pairs: Sequence[Pair], file: Path) -> None:
    """One picture for each task: a line for the compressed buffer, dots upon it for Stable-Baselines3's.

    :param pairs: what was learnt
    :param file: where to; the ending decides on the format
    """
    tasks = list(dict.fromkeys(pair.compressed.task for pair in pairs))
    figure = Figure(figsize=(5 * len(tasks), 4), layout="constrained")
    for axes, task in zip(np.atleast_1d(np.asarray(figure.subplots(1, len(tasks)))), tasks, strict=True):
        _draw(axes, [pair for pair in pairs if pair.compressed.task == task])
    write_figure(figure, file)


def _draw(axes: Axes, pairs: Sequence[Pair]) -> None:
    task = TASKS[pairs[0].compressed.task]
    for pair, colour in zip(pairs, _COLOURS * len(pairs), strict=False):
        if not pair.compressed.episodes:
            continue
        steps, returns = np.array(pair.compressed.episodes).T
        axes.plot(steps, returns, ".", color=colour, alpha=0.2, markersize=4, markeredgewidth=0)
        axes.plot(*_means(pair.compressed), color=colour, linewidth=2.2, label=task.buffers["compressed"])
        axes.plot(*_means(pair.sb3), color=TEXT, linewidth=1.2, linestyle=(0, (1, 3)), label=task.buffers["sb3"])
    axes.set_ylim(task.worst - 0.03 * (task.best - task.worst), task.best + 0.03 * (task.best - task.worst))
    axes.set_title(task.title, loc="left", pad=24, color=TEXT, fontsize=13, fontweight="bold")
    subtitle = f"{task.unit}; line: mean of {WINDOW} episodes"
    axes.annotate(subtitle, (0, 1), (0, 8), "axes fraction", "offset points", color=SUBTLE, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=SUBTLE)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("steps", color=SUBTLE)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[:2], labels[:2], frameon=False, loc="upper left", labelcolor=TEXT)


def _means(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    if len(curve.episodes) <= _FEWEST:
        return np.empty(0), np.empty(0)
    steps, returns = np.array(curve.episodes).T
    return steps[_FEWEST:], running_mean(returns)[_FEWEST:]

"""Pictures of trainings: returns and memory over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from benchmarks._lib.plotting import LEARNT, OURS, SB3, SUBTLE, TEXT, write_figure
from examples._lib.catch import BALLS
from examples._lib.demo import WINDOW, Run

if TYPE_CHECKING:
    from examples._lib.learning import Curve, Pair

#: Episodes before the first mean is drawn.
_FEWEST = 5
#: Colours of the seeds.
_COLOURS = (LEARNT, OURS, "#009E73", "#CC79A7")


def plot_demo(file: Path, run: Run, random: float, plain: Run | None) -> None:
    """Draw returns and memory over the steps of the training.

    :param file: the picture, .svg or .png
    :param run: the training with a compressed buffer
    :param random: mean return of a random player
    :param plain: the same training with SB3's buffer, if there is one
    """
    layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.12, wspace=0.06)
    figure = Figure(figsize=(10, 4), layout=layout)
    left, right = figure.subplots(1, 2)
    _draw_returns(left, run, random, plain)
    _draw_memory(right, run, plain)
    write_figure(figure, file)


def running_mean(returns: NDArray[Any]) -> NDArray[Any]:
    """For each episode, the mean of up to 20 episodes until it.

    :param returns: returns of all episodes, in order
    """
    total = np.cumsum(np.insert(returns, 0, 0.0))
    ends = np.arange(1, len(returns) + 1)
    starts = np.maximum(0, ends - WINDOW)
    means: NDArray[Any] = (total[ends] - total[starts]) / (ends - starts)
    return means


def _draw_returns(axes: Axes, run: Run, random: float, plain: Run | None) -> None:
    steps, returns = np.array(run.episodes).T
    axes.plot(steps, returns, ".", color=LEARNT, alpha=0.25, markersize=5, markeredgewidth=0)
    means = running_mean(returns)
    axes.plot(steps[_FEWEST:], means[_FEWEST:], color=LEARNT, linewidth=2.2)
    label = "DQN with a compressed buffer"
    if plain is not None:
        others, same = np.array(plain.episodes).T
        axes.plot(others[_FEWEST:], running_mean(same)[_FEWEST:], color=TEXT, linewidth=1.2, linestyle=(0, (1, 3)))
        label += "\ndotted: with SB3's, same seed"
    axes.text(0.04, 0.97, label, color=LEARNT, ha="left", va="top", transform=axes.transAxes)
    # Before and after the training, without exploration; the dots are episodes with exploration.
    end = run.memory[-1].step
    axes.plot([0, end], [run.before, run.after], "D", color=LEARNT, clip_on=False)
    axes.text(end * 0.02, run.before - 0.25, f"untrained: {run.before:.1f}", color=LEARNT, va="top")
    below = min(run.after, *means[-WINDOW:]) - 0.25  # neither on the line nor on the dashes
    axes.text(end, below, f"trained: {run.after:.1f}", color=LEARNT, ha="right", va="top")
    axes.axhline(random, color=SUBTLE, linewidth=1, linestyle="--")
    axes.text(end, random - 0.2, f"random player: {random:.1f}", color=SUBTLE, ha="right", va="top")
    axes.set_ylim(-0.3, BALLS + 0.4)
    _finish(axes, "Returns", f"balls caught, of {BALLS}; line: mean of {WINDOW} episodes")


def _draw_memory(axes: Axes, run: Run, plain: Run | None) -> None:
    assert run.report is not None
    steps, nbytes = np.array(run.memory).T
    raw = run.report.raw_nbytes / run.report.transitions
    if plain is not None:
        others, sizes = np.array(plain.memory).T
        axes.plot(others, sizes / 1e6, color=SB3, linewidth=2.2)
    else:
        sizes = steps * raw
        axes.plot(steps, sizes / 1e6, color=SB3, linewidth=2.2, linestyle="--")
    axes.plot(steps, nbytes / 1e6, color=OURS, linewidth=2.2)
    verb = "takes" if plain is not None else "would take"
    place: dict[str, Any] = {"ha": "right", "va": "center"}
    axes.text(steps[-1] * 0.72, sizes[-1] / 1e6 * 0.82, f"SB3 {verb}\n{sizes[-1] / 1e6:,.0f} MB", color=SUBTLE, **place)
    share = nbytes[-1] / sizes[-1]
    text = f"compressed: {nbytes[-1] / 1e6:,.0f} MB ({share:.1%})"
    axes.text(steps[-1], (nbytes[-1] + 0.06 * sizes[-1]) / 1e6, text, color=OURS, **place)
    axes.set_ylim(bottom=0)
    _finish(axes, "Memory of the buffer", "MB resident, with every transition kept")


def _finish(axes: Axes, title: str, subtitle: str) -> None:
    axes.set_title(title, loc="left", pad=24, color=TEXT, fontsize=13, fontweight="bold")
    axes.annotate(subtitle, (0, 1), (0, 8), "axes fraction", "offset points", color=SUBTLE, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=SUBTLE)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("steps", color=SUBTLE)


def draw_curves(pairs: Sequence[Pair], file: Path) -> None:
    """Draw each task: a line for the compressed buffer, dots on it for Stable-Baselines3's.

    :param pairs: trainings with both buffers
    :param file: the picture, .svg or .png
    """
    tasks = list(dict.fromkeys(pair.compressed.task for pair in pairs))
    figure = Figure(figsize=(5 * len(tasks), 4), layout="constrained")
    for axes, task in zip(np.atleast_1d(np.asarray(figure.subplots(1, len(tasks)))), tasks, strict=True):
        _draw(axes, [pair for pair in pairs if pair.compressed.task == task])
    write_figure(figure, file)


def _draw(axes: Axes, pairs: Sequence[Pair]) -> None:
    # Here, because these tasks need Atari games, which the demo does without.
    from examples._lib.learning import TASKS

    task = TASKS[pairs[0].compressed.task]
    for pair, colour in zip(pairs, _COLOURS * len(pairs), strict=False):
        if not pair.compressed.episodes:
            continue
        steps, returns = np.array(pair.compressed.episodes).T
        axes.plot(steps, returns, ".", color=colour, alpha=0.2, markersize=4, markeredgewidth=0)
        axes.plot(*_means(pair.compressed), color=colour, linewidth=2.2, label=task.buffers["compressed"])
        axes.plot(*_means(pair.sb3), color=TEXT, linewidth=1.2, linestyle=(0, (1, 3)), label=task.buffers["sb3"])
    axes.set_ylim(task.worst - 0.03 * (task.best - task.worst), task.best + 0.03 * (task.best - task.worst))
    _finish(axes, task.title, f"{task.unit}; line: mean of {WINDOW} episodes")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[:2], labels[:2], frameon=False, loc="upper left", labelcolor=TEXT)


def _means(curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    if len(curve.episodes) <= _FEWEST:
        return np.empty(0), np.empty(0)
    steps, returns = np.array(curve.episodes).T
    return steps[_FEWEST:], running_mean(returns)[_FEWEST:]

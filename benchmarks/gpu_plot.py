"""Speed and memory of buffers on a device as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.buffer_building import SB3
from benchmarks.buffer_measure import Timings
from benchmarks.gpu_memory import HELD_GOAL, Memory
from examples.plotting import LEARNT, OURS, SUBTLE, TEXT, write_figure
from examples.plotting import SB3 as PLAIN

_OPERATIONS = {"add_8": "add, 8 environments", "sample_256": "sample(256)"}


def draw_device(timings: Timings, memory: Mapping[str, Memory], title: str, file: Path) -> None:
    """Add, sample and memory, a bar for each codec.

    :param timings: of all codecs
    :param memory: of all codecs
    :param title: what was stored, and where
    :param file: where to; ``.svg`` or ``.png``
    """
    from matplotlib.figure import Figure

    names = [name for name in timings.ratios if name != SB3]
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    panels = figure.subplots(1, len(_OPERATIONS) + 2)
    for axes, (operation, label) in zip(panels, _OPERATIONS.items()):
        axes.barh(names, [timings.to_sb3(operation, name) for name in names], color=OURS)
        axes.axvline(1, color=PLAIN, linewidth=1.5)
        axes.set_title(f"{label}\ntimes SB3's", color=TEXT, fontsize=10)
    smaller, held = panels[len(_OPERATIONS) :]
    smaller.barh(names, [timings.ratios[name] for name in names], color=OURS)
    smaller.set_xscale("log")
    smaller.set_xlim(left=1)
    smaller.set_title("observations\ntimes smaller than SB3's", color=TEXT, fontsize=10)
    held.barh(names, [memory[name].held_to_live for name in names], color=OURS)
    held.axvline(HELD_GOAL, color=LEARNT, linewidth=1.5, linestyle="--")
    held.set_title("held by the heap\ntimes what is live", color=TEXT, fontsize=10)
    for axes in panels:
        axes.invert_yaxis()
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=SUBTLE, labelleft=axes is panels[0])
        axes.grid(axis="x", alpha=0.25)
    figure.suptitle(title, color=TEXT, fontsize=11)
    write_figure(figure, file)

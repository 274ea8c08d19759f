"""The figures of buffers as tables."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.console import Group
from rich.table import Table

from benchmarks.buffer_building import SB3
from benchmarks.buffer_measure import Timings

#: Per operation: its heading, and what its seconds are multiplied with.
_ADDING = {
    "add_1": ("add µs\n1 env", 1e6),
    "add_8": ("add µs\n8 envs", 1e6),
    "add_turned_1": ("add, turned µs\n1 env", 1e6),
    "add_turned_8": ("add, turned µs\n8 envs", 1e6),
}
_READING = {
    "sample_32": ("sample ms\n32", 1e3),
    "sample_256": ("sample ms\n256", 1e3),
    "get_256": ("get ms\n256", 1e3),
}
_CAPTION = (
    "Medians, and how many times as long as SB3's buffer in the same run.\n"
    "smaller: raw observations, next ones included as SB3 stores them, divided by what is kept for them.\n"
    "resident: growth of a process that fills a replay buffer with {transitions:,} transitions.\n"
    "sample from a buffer of 8 environments, get per minibatch of a rollout of 128 steps of 8.\n"
    "add per transition, into a full buffer; turned: of views whose channels are last in memory,\n"
    "as VecTransposeImage hands them over in training."
)


def buffer_tables(title: str, timings: Timings, resident: Mapping[str, int], transitions: int) -> Group:
    """What is kept and read, and what adding takes: one row per codec, under that of Stable-Baselines3's buffer.

    :param title: what was stored
    :param timings: of all codecs
    :param resident: bytes, by codec
    :param transitions: how many those bytes hold
    """
    reading = _table(["\nsmaller", "resident\nMB", "of\nSB3's"], _READING)
    adding = _table([], _ADDING)
    for name, ratio in timings.ratios.items():
        sizes = [f"{ratio:.1f}", f"{resident[name] / 1e6:,.1f}", f"{resident[name] / resident[SB3]:.1%}"]
        reading.add_row(name, *sizes, *_durations(timings, name, _READING))
        adding.add_row(name, *_durations(timings, name, _ADDING))
    reading.title, adding.caption = title, _CAPTION.format(transitions=transitions)
    return Group(reading, adding)


def _table(headings: list[str], operations: Mapping[str, tuple[str, float]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.add_column("\ncodec", no_wrap=True)
    for heading, _ in operations.values():
        headings += [heading, "to\nSB3"]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _durations(timings: Timings, name: str, operations: Mapping[str, tuple[str, float]]) -> list[str]:
    row = []
    for operation, (_, unit) in operations.items():
        duration = timings.seconds[operation][name] * unit
        row += [f"{duration:.{1 if duration >= 10 else 2}f}", f"{timings.to_sb3(operation, name):.2f}"]
    return row

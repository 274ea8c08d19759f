"""The figures of buffers as a table."""

from __future__ import annotations

from collections.abc import Mapping

from rich import box
from rich.table import Table

from benchmarks.buffer_building import SB3
from benchmarks.buffer_measure import Timings

#: Per operation: its heading, and what its seconds are multiplied with.
_OPERATIONS = {
    "add_1": ("add µs\n1 env", 1e6),
    "add_8": ("add µs\n8 envs", 1e6),
    "sample_32": ("sample ms\n32", 1e3),
    "sample_256": ("sample ms\n256", 1e3),
    "get_256": ("get ms\n256", 1e3),
}
_CAPTION = (
    "Medians, and how many times as long as SB3's buffer in the same run: add per transition into a full buffer,\n"
    "sample from a replay buffer of 8 environments, get per minibatch of a rollout of 128 steps of 8 environments.\n"
    "smaller: raw observations, next observations included as SB3 stores them, divided by what is kept for them.\n"
    "resident: growth of a process that fills a replay buffer with {transitions:,} transitions."
)


def buffer_table(title: str, timings: Timings, resident: Mapping[str, int], transitions: int) -> Table:
    """One row per codec, under the row of Stable-Baselines3's buffer.

    :param title: what was stored
    :param timings: of all codecs
    :param resident: bytes, by codec
    :param transitions: how many those bytes hold
    """
    caption = _CAPTION.format(transitions=transitions)
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.add_column("\ncodec", no_wrap=True)
    headings = ["\nsmaller", "resident\nMB", "of\nSB3's"]
    for heading, _ in _OPERATIONS.values():
        headings += [heading, "to\nSB3"]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, ratio in timings.ratios.items():
        row = [f"{ratio:.1f}", f"{resident[name] / 1e6:,.1f}", f"{resident[name] / resident[SB3]:.1%}"]
        for operation, (_, unit) in _OPERATIONS.items():
            duration = timings.seconds[operation][name] * unit
            row += [f"{duration:.{1 if duration >= 10 else 2}f}", f"{timings.to_sb3(operation, name):.2f}"]
        table.add_row(name, *row)
    return table

"""The figures of buffers on a device as a table, and which goals they reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich import box
from rich.table import Table

from benchmarks.buffer_measure import Timings
from benchmarks.gpu_memory import HELD_GOAL, Memory

#: At batches of 256, at most so many times as long as Stable-Baselines3's buffer; for batches that the host makes.
SAMPLE_GOALS = {"rle": 3.0, "zstd-5": 3.0}
#: Per operation: its heading, and what its seconds are multiplied with.
_OPERATIONS = {
    "add_1": ("add µs\n1 env", 1e6),
    "add_8": ("add µs\n8 envs", 1e6),
    "sample_32": ("sample ms\n32", 1e3),
    "sample_256": ("sample ms\n256", 1e3),
}
_CAPTION = (
    "Medians, and how many times as long as SB3's buffer in the same run: add per transition into a full buffer,\n"
    "sample from a buffer of 8 environments. On a device, until it is done.\n"
    "smaller: raw observations, next observations included as SB3 stores them, divided by what is kept for them.\n"
    "live: payloads. held: what the heap holds for them, with room, index and staging area, at the worst moment."
)


def gpu_table(title: str, timings: Timings, memory: Mapping[str, Memory]) -> Table:
    """One row per codec, under the row of Stable-Baselines3's buffer.

    :param title: what was stored, and where
    :param timings: of all codecs
    :param memory: of all codecs
    """
    table = Table(title=title, caption=_CAPTION, box=box.SIMPLE_HEAD, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.add_column("\ncodec", no_wrap=True)
    headings = ["\nsmaller", "live\nMB", "held\nMB", "to\nlive"]
    has_device = any(part.device is not None for part in memory.values())
    if has_device:
        headings.append("device\nMB")
    for heading, _ in _OPERATIONS.values():
        headings += [heading, "to\nSB3"]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, ratio in timings.ratios.items():
        row = [f"{ratio:.1f}", *_sizes(memory.get(name), has_device)]
        for operation, (_, unit) in _OPERATIONS.items():
            duration = timings.seconds[operation][name] * unit
            row += [f"{duration:.{1 if duration >= 10 else 2}f}", f"{timings.to_sb3(operation, name):.2f}"]
        table.add_row(name, *row)
    return table


def _sizes(memory: Memory | None, has_device: bool) -> list[str]:
    if memory is None:
        return [""] * (4 if has_device else 3)
    found = [f"{memory.live / 1e6:,.1f}", f"{memory.held / 1e6:,.1f}", f"{memory.held_to_live:.2f}"]
    return [*found, f"{memory.device / 1e6:,.1f}" if memory.device is not None else ""] if has_device else found


def goals(timings: Timings, memory: Mapping[str, Memory]) -> Iterator[str]:
    """One line for each goal: what it is, what was found.

    :param timings: of all codecs
    :param memory: of all codecs
    """
    for name, limit in SAMPLE_GOALS.items():
        if name in timings.ratios:
            ratio = timings.to_sb3("sample_256", name)
            verdict = "reached" if ratio <= limit else "missed"
            yield f"{name}, sample(256): {ratio:.2f} times SB3's, goal at most {limit:g}: {verdict}"
    for name, part in memory.items():
        verdict = "reached" if part.is_tight else "missed"
        found = f"{part.held_to_live:.3f} times what is live"
        yield f"{name}, held: {found}, goal at most {HELD_GOAL:g} and a row: {verdict}"

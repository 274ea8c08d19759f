"""Advice as people read it: a table, a recommendation, and lines to paste."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sb3_extra_buffers.cli.console import console, table
from sb3_extra_buffers.compressed.report import readable

if TYPE_CHECKING:
    from rich.console import Console

    from sb3_extra_buffers.advisor import Advice, Measured

#: More of them are counted.
_MAX_NAMES = 8
#: What the user replaces by a folder on a disk.
_FOLDER = "..."


def show(advice: Advice) -> None:
    """Print what was measured, and what to use.

    :param advice: all of it
    """
    out, stream = console(), advice.stream
    out.print(f"{stream.label}: {stream.observation_space}")
    out.print(f"{stream.transitions:,} transitions, {_tried(advice)}, {len(advice.measured)} buffers measured.\n")
    out.print(_table(advice))
    out.print(
        f"memory: of {advice.transitions:,} transitions, extrapolated. In brackets: times Stable-Baselines3's own."
    )
    out.print(f"time: of add and, every 4th step, sample({advice.batch_size}), relative to Stable-Baselines3's.")
    out.print("*: nothing else is better in both memory and time.")
    for reason, names in _dropped(advice).items():
        several = f"{len(names)} codecs and levels" if len(names) > _MAX_NAMES else ", ".join(names)
        out.print(f"In no buffer: {several}: {reason}.")
    for one in advice.failed:
        out.print(f"\nFailed: {one.name}: {one.reason}")
    _recommend(out, advice)


def _tried(advice: Advice) -> str:
    from sb3_extra_buffers.advisor.verdict import TOO_SMALL

    if advice.screened:
        return f"{len(advice.screened)} codecs and levels tried"
    if not advice.tried:
        return TOO_SMALL
    return "no codec worked" if advice.failed else "no codec tried"


def _dropped(advice: Advice) -> dict[str, list[str]]:
    """Codecs by the reason for which they went into no buffer."""
    found: dict[str, list[str]] = {}
    for one in advice.dropped:
        found.setdefault(one.reason, []).append(str(one.spec))
    return found


def _table(advice: Advice) -> Any:
    numbers = ("memory", "smaller", "add, us", "sample, ms", "time")
    shown = table("", ("  stored as", *numbers), right=numbers)
    for one in advice.ranked:
        mark = "*" if one in advice.verdict.front else " "
        style = "bold green" if one is advice.verdict.chosen else ""
        shown.add_row(f"{mark} {one.candidate.name}", *_numbers(advice, one), style=style)
    shown.columns[0].no_wrap = True  # on a narrow terminal, figures without names say nothing
    return shown


def _numbers(advice: Advice, one: Measured) -> list[str]:
    from sb3_extra_buffers.advisor.verdict import cost_s

    plain, nbytes = advice.plain, one.nbytes(advice.transitions)
    factor = plain.nbytes(advice.transitions) / nbytes
    return [
        readable(nbytes),
        f"{factor:,.0f}x" if factor >= 10 else f"{factor:.1f}x",
        f"{1e6 * one.add_s:,.1f} ({one.add_s / plain.add_s:.2f})",
        f"{1e3 * one.sample_s:.3f} ({one.sample_s / plain.sample_s:.2f})",
        f"{cost_s(one) / cost_s(plain):.2f}",
    ]


def _recommend(out: Console, advice: Advice) -> None:
    out.print()
    if not advice.verdict.compress:
        out.print(f"{advice.verdict.reason} Keep Stable-Baselines3's own {advice.stream.plain_class.__name__}.")
        return
    name = advice.verdict.chosen.candidate.name
    out.print(f"Recommended: {name}. {advice.verdict.reason}\n")
    for line in advice.lines:
        out.print(f"    {line}", soft_wrap=True)
    memory = _memory()
    if memory and advice.verdict.chosen.nbytes(advice.transitions) > memory:
        out.print(f"\nThis machine has {readable(memory)} of memory: choose a smaller buffer, or keep it in a file.\n")
        for line in advice.lines_in_a_file(_FOLDER):
            out.print(f"    {line}", soft_wrap=True)


def _memory() -> int:
    """Memory of this machine in bytes; 0 if it does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0

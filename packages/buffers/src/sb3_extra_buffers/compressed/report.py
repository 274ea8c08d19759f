"""Memory of the observations of a buffer, compressed and uncompressed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

#: Each is a thousand times the previous one.
UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(frozen=True)
class KeyReport:
    """One key of the observation space."""

    #: Empty for a space without keys.
    key: str
    codec: str
    #: Bytes that Stable-Baselines3 would need for the stored observations and next observations.
    raw_nbytes: int
    #: Bytes of their payloads, and of the newest observations, which are not compressed yet.
    live_nbytes: int
    #: What was chosen automatically, what other values of ``prefer`` would take, and against what. Estimates, by the
    #: first observations.
    choice: str = ""

    @property
    def ratio(self) -> float:
        """How many times smaller they are, overhead not included."""
        return self.raw_nbytes / self.live_nbytes if self.live_nbytes else 1.0


@dataclass(frozen=True)
class MemoryReport:
    """The observations of one buffer. Actions, rewards and the like are the same as in Stable-Baselines3."""

    buffer: str
    transitions: int
    keys: tuple[KeyReport, ...]
    heap: str
    #: Payload bytes that are reserved now, in memory or in a file.
    capacity: int
    #: Memory besides payloads: indices and staging areas.
    overhead: int
    #: Transitions that would still be here if the heap had room for them.
    evicted: int = 0
    #: Memory that batches are decoded into. It does not grow with the buffer, so ratios do not include it.
    batches: int = 0

    @property
    def raw_nbytes(self) -> int:
        """Bytes that Stable-Baselines3 would need for the same observations."""
        return sum(key.raw_nbytes for key in self.keys)

    @property
    def live_nbytes(self) -> int:
        """Bytes of their payloads."""
        return sum(key.live_nbytes for key in self.keys)

    @property
    def ratio(self) -> float:
        """How many times smaller the observations are, overhead included."""
        kept = self.live_nbytes + self.overhead
        return self.raw_nbytes / kept if kept and self.raw_nbytes else 1.0

    def __str__(self) -> str:
        rows = list(self._rows())
        width = max(len(row[0]) for row in rows)
        lines = [
            f"  {name:<{width}}  {raw:>9}  {live:>9}  {ratio:>7}  {codec}" for name, raw, live, ratio, codec in rows
        ]
        return "\n".join([self._title(), *(line.rstrip() for line in lines), f"  {self._footer()}"])

    def __rich__(self) -> Table:
        from rich import box
        from rich.table import Table

        table = Table(title=self._title(), caption=self._footer(), box=box.SIMPLE_HEAD, pad_edge=False)
        table.title_justify = table.caption_justify = "left"
        for heading in ("", "raw", "stored", "ratio", "codec"):
            table.add_column(heading, justify="right" if heading in ("raw", "stored", "ratio") else "left")
        for row in self._rows():
            table.add_row(*row)
        return table

    def _rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """The rows of a table: name, raw size, stored size, ratio, codec."""
        for key in self.keys:
            name = key.key or "observations"
            yield name, readable(key.raw_nbytes), readable(key.live_nbytes), f"{key.ratio:.1f}x", key.codec
        yield "overhead", "", readable(self.overhead), "", "index, staging"
        stored = readable(self.live_nbytes + self.overhead)
        yield "together", readable(self.raw_nbytes), stored, f"{self.ratio:.1f}x", ""

    def _title(self) -> str:
        return f"{self.buffer}: {self.transitions:,} transitions"

    def _footer(self) -> str:
        evicted = f", {self.evicted:,} transitions evicted" if self.evicted else ""
        batches = f"; {readable(self.batches)} kept for batches" if self.batches else ""
        choices = "".join(f"\n  {key.key or 'chosen'}: {key.choice}" for key in self.keys if key.choice)
        return f"heap {self.heap}: room for {readable(self.capacity)}{evicted}{batches}{choices}"


def readable(nbytes: float) -> str:
    """A size with a unit."""
    for unit in UNITS[:-1]:
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} {UNITS[-1]}"

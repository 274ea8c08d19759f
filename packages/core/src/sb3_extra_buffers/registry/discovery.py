"""Which names are offered, read from the metadata of installed distributions. Imports no plugin."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True)
class Offer:
    """One distribution offering one name."""

    name: str
    distribution: str
    version: str
    entry_point: EntryPoint

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


def find_offers(group: str) -> dict[str, tuple[Offer, ...]]:
    """Read every entry point of ``group``, by name, in alphabetical order.

    More than one offer for a name is kept: whether that is an error depends on whether anybody uses the name.
    """
    from importlib.metadata import entry_points  # costs more than the rest of this module together

    offers: defaultdict[str, list[Offer]] = defaultdict(list)
    for entry_point in entry_points(group=group):
        dist = entry_point.dist
        distribution, version = (dist.name, dist.version) if dist is not None else ("an unknown distribution", "?")
        offers[entry_point.name].append(Offer(entry_point.name, distribution, version, entry_point))
    return {name: tuple(sorted(offers[name], key=str)) for name in sorted(offers)}

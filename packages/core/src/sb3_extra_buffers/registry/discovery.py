"""Which names are offered, read from the metadata of installed distributions, and the error for one that is not.

Imports no plugin.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sb3_extra_buffers.errors import UnknownPluginError
from sb3_extra_buffers.errors.install import install_command

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

    More than one offer for a name is kept: it is an error only if the name is used.
    """
    from importlib.metadata import entry_points  # costs more than the rest of this module together

    offers: defaultdict[str, list[Offer]] = defaultdict(list)
    for entry_point in entry_points(group=group):
        dist = entry_point.dist
        distribution, version = (dist.name, dist.version) if dist is not None else ("an unknown distribution", "?")
        offers[entry_point.name].append(Offer(entry_point.name, distribution, version, entry_point))
    return {name: tuple(sorted(offers[name], key=str)) for name in sorted(offers)}


def unknown_name(kind: str, name: str, installed: Collection[str], homes: Mapping[str, str]) -> UnknownPluginError:
    """The error for an unknown name, with the nearest names and the command that installs the plugin.

    :param kind: such as ``codec`` or ``heap``
    :param name: the name that was asked for
    :param installed: the names that are offered
    :param homes: plugins of other distributions, and the distribution that provides each
    """
    return UnknownPluginError(kind, name, tuple(sorted(installed)), _hint(kind, name, installed, homes))


def _hint(kind: str, name: str, installed: Collection[str], homes: Mapping[str, str]) -> str:
    known = {*installed, *homes}
    if name in homes:
        return _install(name, homes)
    attached = re.fullmatch(r"(.*?)(-?[0-9]+)", name)
    if attached and attached[1] in known:
        return f"The level of a name with a dash or a digit follows a slash: {attached[1]}/{attached[2]}"
    longer = sorted(other for other in known if name and other.startswith(name))
    nearest = longer or difflib.get_close_matches(name.lower(), sorted(known), n=1)
    if not nearest:
        return f"Check the spelling, or install the distribution that provides this {kind}."
    missing = [_install(guess, homes) for guess in nearest[:1] if guess not in installed]
    return " ".join([f"Did you mean {' or '.join(map(repr, nearest))}?", *missing])


def _install(name: str, homes: Mapping[str, str]) -> str:
    return f"{name!r} is not installed. Run: {install_command(homes[name])}"

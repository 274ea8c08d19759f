"""The error for a name that nobody offers: what was probably meant, and how to get it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping

from sb3_extra_buffers.errors import UnknownPluginError


def unknown_name(kind: str, name: str, installed: Collection[str], homes: Mapping[str, str]) -> UnknownPluginError:
    """Build the error that gets the user furthest.

    :param kind: «codec» or «heap»
    :param name: what was asked for
    :param installed: the names that would have worked
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
    return f"{name!r} is not installed. Run: pip install {homes[name]}"

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
    :param homes: names known to live in a distribution of their own, and the extra that installs it
    """
    return UnknownPluginError(kind, name, tuple(sorted(installed)), _hint(name, installed, homes))


def _hint(name: str, installed: Collection[str], homes: Mapping[str, str]) -> str:
    known = {*installed, *homes}
    if name in homes:
        return _install(name, homes)
    attached = re.fullmatch(r"(.*?)(-?[0-9]+)", name)
    if attached and attached[1] in known:
        return f"The level of a name with a dash or a digit follows a slash: {attached[1]}/{attached[2]}"
    longer = sorted(other for other in known if name and other.startswith(name))
    nearest = longer or difflib.get_close_matches(name.lower(), sorted(known), n=1)
    if not nearest:
        return "Is the package that brings it installed? «python -m sb3_extra_buffers.doctor» lists what is."
    missing = [_install(guess, homes) for guess in nearest[:1] if guess not in installed]
    return " ".join([f"Did you mean {' or '.join(map(repr, nearest))}?", *missing])


def _install(name: str, homes: Mapping[str, str]) -> str:
    # The bound keeps pip from taking an older core, which knows no codec distributions, and uninstalling this one.
    return f'{name!r} is not installed. Run: pip install "sb3-extra-buffers[{homes[name]}]>=1"'

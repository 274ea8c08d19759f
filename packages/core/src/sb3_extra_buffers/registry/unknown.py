"""The error for a name that nobody offers: what was probably meant, and how to get it."""

from __future__ import annotations

import difflib
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
    if name in homes:
        return _install(name, homes)
    stem = name.rstrip("0123456789")
    if stem != name and stem.rstrip("-") in {*installed, *homes}:
        level = name[len(stem.rstrip("-")) :]
        return f"A level after a name with a dash or a digit is written with a slash: {stem.rstrip('-')}/{level}"
    nearest = difflib.get_close_matches(name, sorted({*installed, *homes}), n=1)
    if not nearest:
        return "Is the package that brings it installed? «python -m sb3_extra_buffers.doctor» lists what is."
    guess = nearest[0]
    return f"Did you mean {guess!r}?" + (f" {_install(guess, homes)}" if guess not in installed else "")


def _install(name: str, homes: Mapping[str, str]) -> str:
    return f'{name!r} is not installed. Run: pip install "sb3-extra-buffers[{homes[name]}]"'

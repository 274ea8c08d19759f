"""What every plugin has in common: pluggy's markers, the protocol number, and parameters.

A plugin module imports :data:`hookimpl` (``sb3_extra_buffers.codecs`` and ``.heaps`` re-export it) and marks the one
function that returns its plugin object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, Union

import pluggy

from sb3_extra_buffers.errors import ParameterError

PROJECT = "sb3_extra_buffers"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

#: Types of parameters: the scalars of JSON.
Scalar = Union[bool, int, float, str, None]


class Plugin(Protocol):
    """The part that codec plugins and heap plugins have in common."""

    @property
    def protocol(self) -> int:
        """The protocol number that the plugin was written against, as a literal."""

    @property
    def summary(self) -> str:
        """One line for listings."""


def complete_parameters(
    owner: str, given: Mapping[str, Scalar], defaults: Mapping[str, Scalar], required: tuple[str, ...] = ()
) -> dict[str, Scalar]:
    """Fill in defaults and refuse parameters that are unknown, missing or of another type.

    :param owner: the plugin, for the error, such as ``codec 'zstd'``
    :param given: the parameters that the user gave
    :param defaults: every optional parameter with its default; the default's type is the parameter's type
    :param required: names without a default; their type is left to the owner
    :return: a new dictionary with a value for each parameter; ``given`` is not changed
    """
    known = sorted({*defaults, *required})
    for name, value in given.items():
        if name not in known:
            allowed = f"known parameters: {', '.join(known)}" if known else "it takes no parameters"
            raise ParameterError(owner, name, value, allowed)
        default = defaults.get(name)
        # bool is a subclass of int: ``level=True`` must not pass for 1.
        if default is not None and type(value) is not type(default):
            raise ParameterError(owner, name, value, f"it must be of type {type(default).__name__}, like {default!r}")
    for name in required:
        if name not in given:
            raise ParameterError(owner, name, None, "it must be given")
    return {**defaults, **given}

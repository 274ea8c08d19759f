"""What a checkpoint may say about where payloads live, and what only those who load it may."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

from sb3_extra_buffers.stores import Claimed

#: Where files are, and whether those that are there are used. A file of others must not choose among ours.
_PLACES = ("folder", "path")
_OURS_TO_SAY = (*_PLACES, "reopen")


def claimed_place(heap_kwargs: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Parameters of a heap that a file says, without those that it may not, and with a capacity that is only claimed.

    :param heap_kwargs: as they were saved
    """
    if heap_kwargs is None:
        return None
    found = {name: value for name, value in heap_kwargs.items() if name not in _OURS_TO_SAY}
    if type(found.get("capacity")) is int:
        found["capacity"] = Claimed(found["capacity"])
    return found


def tell_of_place(
    checkpoint: str | os.PathLike[str], saved: Mapping[str, Any] | None, named: Mapping[str, Any] | None
) -> None:
    """Warn whoever loads a buffer that had its file in a chosen place, and names none: it may fill another disk.

    :param checkpoint: what is loaded
    :param saved: parameters of the heap, as they were saved
    :param named: those that were given to ``load``
    """
    had = {name: saved[name] for name in _PLACES if saved is not None and saved.get(name) is not None}
    if not had or any(name in _PLACES for name in named or ()):
        return
    warnings.warn(
        f"{os.fspath(checkpoint)}: the heap of the buffer was made with {had}. A checkpoint does not say where files "
        "are made, so the file of the loaded buffer is a temporary one. To name a place: "
        "load(..., heap_kwargs={'folder': ...}), or {'path': ...} for a file that is not there yet; "
        "{'folder': None} says that a temporary one is meant.",
        stacklevel=4,  # who calls the load() of a class
    )

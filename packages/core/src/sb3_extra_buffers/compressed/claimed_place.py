"""What a checkpoint may say about where payloads live, and what only those who load it may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sb3_extra_buffers.stores import Claimed

#: Where files are, and whether those that are there are used. A file of others must not choose among ours.
_OURS_TO_SAY = ("folder", "path", "reopen")


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

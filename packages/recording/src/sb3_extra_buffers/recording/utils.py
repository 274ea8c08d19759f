"""``force_alloc_mem``: take the memory of a recording at once."""

from __future__ import annotations

from typing import Any

from sb3_extra_buffers.errors import BufferStateError
from sb3_extra_buffers.recording.buffers import BaseRecordBuffer


def force_alloc_mem(mem: BaseRecordBuffer, val: Any = 0) -> None:
    """Fill the arrays of a recording, so that its memory is taken now and not step by step.

    Memory for compressed frames is not known before there are frames, and is not taken.

    :param mem: a recording with no steps in it
    :param val: what to fill it with
    """
    if len(mem):
        found, hint = f"{len(mem)} steps would be overwritten", "Call it before anything is recorded."
        raise BufferStateError(type(mem).__name__, "take all memory now", found, hint)
    for array in (mem.frames, mem.rewards, mem.actions, mem.features):
        array.fill(val)

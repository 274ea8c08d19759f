"""What to paste into a training script."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from sb3_extra_buffers.advisor.candidates import stores_frames
from sb3_extra_buffers.advisor.measuring import Measured
from sb3_extra_buffers.advisor.stream import Stream
from sb3_extra_buffers.compressed.options import CELLS, FRAMES

#: Room beyond what was measured: who plays well sees more than who plays at random, and a ring has gaps.
_MARGIN = 1.25
#: What nobody needs to know to the byte.
_ROUNDED = 1_000_000


def lines(stream: Stream, options: Mapping[str, Any]) -> list[str]:
    """An import, and arguments of an algorithm.

    :param stream: what is stored
    :param options: of the buffer; strings, numbers and dictionaries, which JSON writes as Python does
    """
    kind = stream.buffer_class.__name__
    arguments = f"replay_buffer_class={kind}"
    if options:
        arguments += f", replay_buffer_kwargs={json.dumps(dict(options))}"
    return [f"from sb3_extra_buffers.compressed import {kind}", arguments]


def options_in_a_file(stream: Stream, chosen: Measured, transitions: int, folder: str) -> dict[str, Any]:
    """Arguments of a buffer that stores the same in a file, which claims no more of the disk than that takes.

    :param stream: what is stored
    :param chosen: how
    :param transitions: the size that is planned
    :param folder: where the file goes
    """
    options = dict(chosen.candidate.options)
    if stores_frames(stream) and chosen.stored_as != FRAMES and "prefer" not in options:
        options["layout"] = CELLS  # in a file, «auto» would make frames of images that it stores as cells in memory
    capacity = math.ceil(_MARGIN * chosen.nbytes(transitions) / _ROUNDED) * _ROUNDED
    return {**options, "heap": "mmap", "heap_kwargs": {"folder": folder, "capacity": capacity}}

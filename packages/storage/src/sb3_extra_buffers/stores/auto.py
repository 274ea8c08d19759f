"""``auto``: which codec, judged by the space and by what is stored first."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from sb3_extra_buffers.codecs import CellSpec, Codec, CodecSpec, bind, names
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.stores.chunks import ChunkStore
from sb3_extra_buffers.stores.judging import MIN_NBYTES, rows_to_judge, try_codec
from sb3_extra_buffers.stores.preferences import GENERAL, QUICK, first_installed

logger = logging.getLogger("sb3_extra_buffers")

#: Decodes about twice as fast as the others, so it may be somewhat larger.
_RUNS = CodecSpec("rle-jit")
_RUNS_MAY_BE_LARGER = 1.25
#: An image that is decoded alone is had in a fraction of the time of one that takes its whole chunk along.
_ALONE_MAY_BE_LARGER = 1.5


@dataclass(frozen=True)
class Choice:
    """A codec, and why it was chosen. ``None`` stands for no codec."""

    codec: Codec | None
    reason: str
    #: How many times smaller it made what it was chosen by.
    ratio: float = 1.0


def choose_by_space(cell: CellSpec) -> Choice | None:
    """Choose without having seen data, or return ``None`` if it takes data to choose."""
    if cell.nbytes < MIN_NBYTES:
        return Choice(None, f"chosen: {cell.nbytes} bytes are too few to compress")
    return None


def choose_by_content(label: str, cell: CellSpec, rows: Bytes) -> Choice:
    """Choose by how small the installed codecs make the first rows, and say so to the log.

    :param label: what the rows are, for the log
    :param cell: what one row holds
    :param rows: shape ``(n, cell.nbytes)``
    """
    choice = judge_content(cell, rows)
    log_choice(label, choice)
    return choice


def judge_content(cell: CellSpec, rows: Bytes) -> Choice:
    """What would be chosen for these rows."""
    rows = rows_to_judge(rows)
    best = try_codec(bind(first_installed(GENERAL), cell), rows)
    blank = rows.min() == rows.max()
    if _RUNS.name in names() and not blank:  # a blank first screen says nothing about those that follow
        runs = try_codec(bind(_RUNS, cell), rows)
        if runs.nbytes <= best.nbytes * _RUNS_MAY_BE_LARGER:
            best = runs
    if best.pays:
        reason = f"chosen: makes the first observations {best.ratio:.1f} times smaller"
        return Choice(best.codec, reason, best.ratio)
    return Choice(None, f"chosen: {best.codec.spec} makes the first observations only {best.ratio:.2f} times smaller")


def largest_instead(rows: Bytes, patches: Bytes) -> float:
    """How many bytes cells may take so that they are the better choice for images than frames.

    :param rows: images
    :param patches: the same as frames
    """
    if len(patches) * ChunkStore.SMALL <= rows.nbytes:
        return len(patches)
    # Chunks that patches alone do not make small are compressed, and an image is read with all others of its chunk.
    squeezed = try_codec(bind(first_installed(QUICK), CellSpec(np.uint8, len(patches))), patches[np.newaxis])
    return squeezed.nbytes * _ALONE_MAY_BE_LARGER


def log_choice(label: str, choice: Choice) -> None:
    """Say to the log what was chosen.

    :param label: for what
    :param choice: what it is
    """
    logger.info("%s: %s %s", label, "none" if choice.codec is None else choice.codec.spec, choice.reason)

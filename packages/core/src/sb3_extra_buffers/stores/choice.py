"""``auto``: which codec, judged by the space and by what is stored first."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from sb3_extra_buffers.codecs import CellSpec, Codec, CodecSpec, bind, names
from sb3_extra_buffers.stores.preferences import QUICK, first_installed
from sb3_extra_buffers.views import Bytes

logger = logging.getLogger("sb3_extra_buffers")

#: Below this, a payload's place in the index and the call that decodes it cost more than compression can save.
MIN_NBYTES = 256
#: Decodes about twice as fast as the above, so it may be somewhat larger.
_RUNS = CodecSpec("rle-jit")
_RUNS_MAY_BE_LARGER = 1.25
#: A codec must save at least a fifth to be worth its time.
_MIN_RATIO = 1.25
#: A long first write is judged by about this many of its rows, from all over it.
_ROWS_TO_JUDGE = 32


@dataclass(frozen=True)
class Choice:
    """A codec, and why it was chosen. ``None`` stands for no codec."""

    codec: Codec | None
    reason: str


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
    rows = rows[:: -(-len(rows) // _ROWS_TO_JUDGE)]
    installed = set(names())
    general = bind(first_installed(QUICK), cell)
    best, size = general, _size(general, rows)
    blank = rows.min() == rows.max()
    if _RUNS.name in installed and not blank:  # a blank first screen says nothing about those that follow
        runs = bind(_RUNS, cell)
        runs_size = _size(runs, rows)
        if runs_size <= size * _RUNS_MAY_BE_LARGER:
            best, size = runs, runs_size
    ratio = rows.nbytes / size
    if ratio < _MIN_RATIO:
        choice = Choice(None, f"chosen: {best.spec} makes the first observations only {ratio:.2f} times smaller")
    else:
        choice = Choice(best, f"chosen: makes the first observations {ratio:.1f} times smaller")
    logger.info("%s: %s %s", label, "none" if choice.codec is None else choice.codec.spec, choice.reason)
    return choice


def _size(codec: Codec, rows: Bytes) -> int:
    return sum(len(codec.encode(row)) for row in rows)

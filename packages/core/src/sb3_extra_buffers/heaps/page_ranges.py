"""Which pages the payloads of a batch lie on."""

from __future__ import annotations

import numpy as np

from sb3_extra_buffers.memory import Indices


def merged(begins: Indices, ends: Indices, unit: int) -> tuple[Indices, Indices]:
    """Ranges of whole units that cover these ranges of bytes, in order, none touching another.

    :param begins: where they begin, in any order
    :param ends: behind their last bytes; none is empty
    :param unit: such as the size of a page
    :return: the first unit of each range, and the one behind its last
    """
    order = np.argsort(begins)
    firsts, behind = begins[order] // unit, np.maximum.accumulate((ends[order] - 1) // unit + 1)
    apart = firsts[1:] > behind[:-1]
    return firsts[np.concatenate([[True], apart])], behind[np.concatenate([apart, [True]])]

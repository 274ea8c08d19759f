"""What codecs make of real observations, and whether that pays.

What is too small to try and what counts as enough are the same for «auto» and for the advisor. How small rows become is
all that «auto» asks; the advisor, who has time, also measures how long that takes and whether they come back.
"""

from __future__ import annotations

from dataclasses import dataclass

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.memory import Bytes

#: Below this, a payload's place in the index and the call that decodes it cost more than compression can save.
MIN_NBYTES = 256
#: What is compressed must be smaller by a fifth at least to be worth its time.
MIN_RATIO = 1.25
#: Whoever looks at a long stream looks at about this many of its rows, from all over it.
ROWS_TO_JUDGE = 32


@dataclass(frozen=True)
class Trial:
    """What a codec made of some rows.

    :param codec: which
    :param raw_nbytes: what they were
    :param nbytes: what their payloads take
    """

    codec: Codec
    raw_nbytes: int
    nbytes: int

    @property
    def ratio(self) -> float:
        """How many times smaller they are."""
        return self.raw_nbytes / self.nbytes

    @property
    def pays(self) -> bool:
        """Whether they are so much smaller that it is worth the time."""
        return pays(self.ratio)


def pays(ratio: float) -> bool:
    """Whether compression by this factor is worth its time."""
    return ratio >= MIN_RATIO


def rows_to_judge(rows: Bytes, count: int = ROWS_TO_JUDGE) -> Bytes:
    """At most so many rows, evenly from all over what is there."""
    return rows[:: -(-len(rows) // count)]


def try_codec(codec: Codec, rows: Bytes) -> Trial:
    """Encode every row.

    :param codec: bound to what a row holds
    :param rows: shape ``(n, codec.cell.nbytes)``
    """
    return Trial(codec, rows.nbytes, sum(len(codec.encode(row)) for row in rows))

"""Bytes that are nearly right: what hypothesis draws where there is no libFuzzer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

#: Numbers that sizes and counts go wrong with.
_NUMBERS = [0, 1, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**60, 2**63 - 1, 2**64 - 1]
_DIGITS = [
    b"0",
    b"-1",
    b"9223372036854775807",
    b"1152921504606846976",
    b"1e9",
    b"null",
    b"[]",
    b'"x"',
    b"Infinity",
    b"NaN",
]
_EDITS = ["flip", "byte", "number", "cut", "drop", "repeat", "insert", "swap", "digits"]


@st.composite
def nearly(draw: Any, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with some edits, or any bytes at all."""
    if draw(st.integers(0, 19)) == 0:
        return bytes(draw(st.binary(max_size=300)))
    content = bytearray(draw(st.sampled_from(list(seeds))))
    for _ in range(draw(st.integers(1, 4))):
        _edit(content, draw)
    return bytes(content)


def _edit(content: bytearray, draw: Any) -> None:
    kind, size = draw(st.sampled_from(_EDITS)), len(content)
    # Headers are where most can go wrong: half of all edits are among the first bytes, or the last.
    ends = st.integers(0, min(size, 24)) | st.integers(max(0, size - 24), size)
    place = draw(ends | st.integers(0, size))
    some = draw(st.integers(1, 9))
    if kind == "flip" and place < size:
        content[place] ^= 1 << draw(st.integers(0, 7))
    elif kind == "byte" and place < size:
        content[place] = draw(st.integers(0, 255))
    elif kind == "number":
        width = draw(st.sampled_from([1, 2, 4, 8]))
        number = draw(st.sampled_from(_NUMBERS)) % (1 << 8 * width)
        content[place : place + width] = number.to_bytes(width, draw(st.sampled_from(["little", "big"])))
    elif kind == "cut":
        del content[place:]
    elif kind == "drop":
        del content[place : place + some]
    elif kind == "repeat":
        content[place:place] = content[place : place + some]
    elif kind == "insert":
        content[place:place] = draw(st.binary(min_size=1, max_size=9))
    elif kind == "swap":
        other = draw(st.integers(0, size))
        content[place : place + some], content[other : other + some] = (
            content[other : other + some],
            content[place : place + some],
        )
    elif kind == "digits":
        numbers = [at for at in range(size) if 0x30 <= content[at] <= 0x39]
        if numbers:
            at = draw(st.sampled_from(numbers))
            content[at : at + 1] = draw(st.sampled_from(_DIGITS))

"""Rules about what comes back, and how large it gets on the way."""

from __future__ import annotations

import numpy as np

from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject, as_bytes, decoded
from sb3_extra_buffers.testing.content import COUNTS, DTYPES, contents, special_floats
from sb3_extra_buffers.testing.rule import expect

#: Large cells are about counts that run over; every kind of content has been tried on small ones.
_LARGE = ("constant", "runs", "noise")


@CODEC_RULES.rule("round-trip", "Decoding restores every bit of a cell, whatever its dtype, size and content.")
def round_trip(subject: CodecSubject) -> None:
    for dtype in DTYPES:
        for count in COUNTS:
            codec = subject.bind(dtype, count)
            for kind, cell in contents(codec.cell):
                if count > 1000 and kind not in _LARGE:
                    continue
                back = decoded(codec, codec.encode(cell))
                wrong = np.flatnonzero(back != cell)
                expect(not len(wrong), f"{codec.cell} of {kind}: {len(wrong)} bytes differ, the first at {wrong[:1]}")


@CODEC_RULES.rule("special-floats", "NaN payloads, both zeros, both infinities and subnormals survive bit for bit.")
def special_float_bits(subject: CodecSubject) -> None:
    for dtype in DTYPES:
        if dtype.kind != "f" or dtype.itemsize > 8:
            continue  # long double has padding bits of its own; round-trip covers it with arbitrary bytes
        values = special_floats(dtype.newbyteorder("="))
        for kind, repeats in (("single", 1), ("runs of", 9)):
            cell = np.repeat(values, repeats).astype(dtype.newbyteorder("="))
            codec = subject.bind(dtype, len(cell))
            back = decoded(codec, codec.encode(cell.view(np.uint8)))
            expect(back.tobytes() == cell.tobytes(), f"{kind} special values of {dtype.name} came back with other bits")


@CODEC_RULES.rule("size-bound", "No payload is longer than max_encoded_nbytes, whatever the content.")
def size_bound(subject: CodecSubject) -> None:
    for dtype in DTYPES:
        for count in (1, 2, 3, 7, 64, 255, 256, 257, 3000):
            codec = subject.bind(dtype, count)
            for kind, cell in contents(codec.cell, seed=1):
                length, bound = len(as_bytes(codec.encode(cell))), codec.max_encoded_nbytes
                expect(length <= bound, f"{codec.cell} of {kind} took {length} bytes, the bound is {bound}")


@CODEC_RULES.rule("repeatable", "Encoding a cell twice gives the same payload.")
def repeatable(subject: CodecSubject) -> None:
    codec = subject.bind(np.uint8, 5000)
    for kind, cell in contents(codec.cell):
        expect(
            as_bytes(codec.encode(cell)) == as_bytes(codec.encode(cell)), f"two payloads of one cell of {kind} differ"
        )

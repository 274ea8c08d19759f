"""Rules about many cells at once."""

from __future__ import annotations

import numpy as np

from sb3_extra_buffers.codecs import Codec, decode_batch, encode_batch
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject, as_bytes, sample
from sb3_extra_buffers.testing.memory import GuardedRows
from sb3_extra_buffers.testing.rule import expect
from sb3_extra_buffers.views import Bytes, FlatBytes, Indices

_CELLS = ((np.uint8, 33), (np.uint8, 3000), (np.float32, 700))


def _rows(codec: Codec, count: int) -> Bytes:
    kinds = ("runs", "noise", "constant", "short runs")
    rows = [sample(codec, kinds[index % 4], seed=index) for index in range(count)]
    return np.stack(rows) if rows else np.empty((0, codec.cell.nbytes), np.uint8)


def _encoded(codec: Codec, rows: Bytes) -> tuple[Bytes, Indices]:
    """All payloads in one array behind an odd number of unrelated bytes, and their lengths."""
    out = np.empty(3 + len(rows) * codec.max_encoded_nbytes, np.uint8)
    return out, encode_batch(codec, rows, out[3:])


@CODEC_RULES.rule("batch-encode", "Encoding a batch gives the payloads of its cells, one behind the other.")
def batch_encode(subject: CodecSubject) -> None:
    for dtype, count in _CELLS:
        codec = subject.bind(dtype, count)
        for size in (0, 1, 2, 9):
            rows = _rows(codec, size)
            before = rows.copy()
            singles = [as_bytes(codec.encode(row)) for row in rows]
            target = GuardedRows(1, size * codec.max_encoded_nbytes, offset=1)
            lengths = encode_batch(codec, rows, target.row)
            target.expect_bands_intact(f"encoding {size} cells")
            expect((rows == before).all(), f"encoding {size} cells changed them")
            expect(lengths.tolist() == [len(single) for single in singles], f"{size} cells: wrong lengths")
            expect(target.row[: lengths.sum()].tobytes() == b"".join(singles), f"{size} cells: other payloads")


@CODEC_RULES.rule(
    "batch-decode", "Decoding a batch gives what single calls give, with repeats, in any order, on any threads."
)
def batch_decode(subject: CodecSubject) -> None:
    for dtype, count in _CELLS:
        codec = subject.bind(dtype, count)
        rows = _rows(codec, 9)
        payloads, lengths = _encoded(codec, rows)
        starts = 3 + lengths.cumsum() - lengths
        random = np.random.default_rng(0)
        orders = [np.arange(9), np.arange(9)[::-1], random.integers(0, 9, 40), np.array([4]), np.empty(0, np.int64)]
        for order in orders:
            for threads in (None, 1, 2, 3):
                out = GuardedRows(len(order), codec.cell.nbytes, offset=1)
                decode_batch(codec, FlatBytes(payloads), starts[order], lengths[order], out.rows, threads=threads)
                what = f"decoding cells {order.tolist()} on {threads} threads"
                out.expect_bands_intact(what)
                expect((out.rows == rows[order]).all(), f"{what} gave something else")

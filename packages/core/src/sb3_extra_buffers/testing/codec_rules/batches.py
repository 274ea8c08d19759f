"""Rules about many cells at once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from sb3_extra_buffers.codecs import Codec, decode_batch, encode_batch
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.memory import Bytes, ByteSource, FlatBytes, Indices
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject, as_bytes, sample
from sb3_extra_buffers.testing.heap_subject import put
from sb3_extra_buffers.testing.memory import GuardedRows
from sb3_extra_buffers.testing.rule import expect

_CELLS = ((np.uint8, 33), (np.uint8, 3000), (np.float32, 700))


def _rows(codec: Codec, count: int) -> Bytes:
    kinds = ("runs", "noise", "constant", "short runs")
    rows = [sample(codec, kinds[index % 4], seed=index) for index in range(count)]
    return np.stack(rows) if rows else np.empty((0, codec.cell.nbytes), np.uint8)


def _sources(codec: Codec, rows: Bytes) -> Iterator[tuple[ByteSource, Indices, Indices]]:
    """The payloads of these rows in an array, at odd offsets, and in a heap, whose positions mean nothing to others."""
    payloads = [as_bytes(codec.encode(row)) for row in rows]
    lengths = np.array([len(payload) for payload in payloads])
    flat = np.frombuffer(b"odd" + b"".join(payloads), np.uint8)
    yield FlatBytes(flat), 3 + lengths.cumsum() - lengths, lengths
    heap = create("memory", len(rows) + 1)
    for cell, payload in enumerate(payloads):
        put(heap, [len(rows)], [bytes(100_000)])  # in between, so that the payloads end up in several segments
        put(heap, [cell], [payload])
    yield heap, *heap.locate(np.arange(len(rows)))


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
        random = np.random.default_rng(0)
        orders = [np.arange(9), np.arange(9)[::-1], random.integers(0, 9, 40), np.array([4]), np.empty(0, np.int64)]
        for (source, starts, lengths), order in itertools.product(_sources(codec, rows), orders):
            for threads in (None, 1, 2, 3):
                out = GuardedRows(len(order), codec.cell.nbytes, offset=1)
                decode_batch(codec, source, starts[order], lengths[order], out.rows, threads=threads)
                what = f"decoding cells {order.tolist()} from {type(source).__name__} on {threads} threads"
                out.expect_bands_intact(what)
                expect((out.rows == rows[order]).all(), f"{what} gave something else")

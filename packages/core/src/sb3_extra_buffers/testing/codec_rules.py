"""Rules for codecs about cells: what comes back, single and in batches, and the memory that a codec is given."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from sb3_extra_buffers.codecs import Codec, decode_batch, encode_batch
from sb3_extra_buffers.errors import CellMismatchError
from sb3_extra_buffers.heaps.memory import MemoryHeap
from sb3_extra_buffers.memory import Bytes, ByteSource, FlatBytes, Indices
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject, as_bytes, cases, decoded, sample
from sb3_extra_buffers.testing.content import (
    COUNTS,
    DTYPES,
    GuardedRows,
    at_odd_offset,
    contents,
    expect_steady_memory,
    special_floats,
)
from sb3_extra_buffers.testing.heap_subject import put
from sb3_extra_buffers.testing.rule import NotApplicable, expect, expect_raises

#: Large cells are about counts that run over; every kind of content has been tried on small ones.
_LARGE = ("constant", "runs", "noise")
_KINDS = ("runs", "noise")
_CELLS = ((np.uint8, 33), (np.uint8, 3000), (np.float32, 700))


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
        payloads = {as_bytes(codec.encode(cell)) for _ in range(2)}
        expect(len(payloads) == 1, f"two payloads of one cell of {kind} differ")


@CODEC_RULES.rule("cells-alike", "Cells that differ in one byte never get the content of each other, in any order.")
def cells_alike(subject: CodecSubject) -> None:
    for dtype, count in ((np.uint8, 3000), (np.float32, 700)):
        codec = subject.bind(dtype, count)
        for kind, cell in contents(codec.cell):
            # Of equal length, and equal at both ends: raw payloads of these differ only in the middle.
            alike = np.repeat(cell[np.newaxis], 8, axis=0)
            alike[np.arange(8), np.arange(3, 11) * len(cell) // 14] ^= 1
            payloads = [as_bytes(codec.encode(row)) for row in alike]
            for number in (0, 1, 0, 2, 7, 3, 6, 4, 5, 1):
                wrong = int((decoded(codec, payloads[number]) != alike[number]).sum())
                expect(not wrong, f"{codec.cell} of {kind}: {wrong} bytes are those of a similar cell")


@CODEC_RULES.rule("codec-leaks", "Encoding and decoding for long leaves the memory of the process as it is.")
def codec_leaks(subject: CodecSubject) -> None:
    codec = subject.bind(np.uint8, 1 << 16)
    cells = [sample(codec, "noise", seed) for seed in range(4)]
    out = np.empty(codec.cell.nbytes, np.uint8)

    def work() -> None:
        for cell in cells:
            codec.decode_into(codec.encode(cell), out)

    expect_steady_memory("encoding and decoding", work, 4 * codec.cell.nbytes, 12)


@CODEC_RULES.rule("identity", "With identity, every payload equals its cell.")
def identity(subject: CodecSubject) -> None:
    if not subject.plugin.identity:
        raise NotApplicable("the plugin does not declare identity")
    for dtype, count in _CELLS:
        codec = subject.bind(dtype, count)
        expect(codec.max_encoded_nbytes == codec.cell.nbytes, f"the size bound is {codec.max_encoded_nbytes}")
        for kind, cell in contents(codec.cell):
            expect(as_bytes(codec.encode(cell)) == cell.tobytes(), f"the payload of {codec.cell} of {kind} differs")


@CODEC_RULES.rule("input-unchanged", "Encoding and decoding do not write to their input.")
def input_unchanged(subject: CodecSubject) -> None:
    for codec, kind, cell, kept in cases(subject, [(np.uint8, 3000)]):
        expect((cell == sample(codec, kind)).all(), f"encoding changed a cell of {kind}")
        payload = bytearray(kept)
        decoded(codec, payload)
        expect(payload == kept, f"decoding changed the payload of a cell of {kind}")


@CODEC_RULES.rule(
    "input-not-kept", "A payload does not change when its cell, or any other, is written or encoded later."
)
def input_not_kept(subject: CodecSubject) -> None:
    codec = subject.bind(np.uint8, 3000)
    for kind in _KINDS:
        cell = sample(codec, kind)
        payload = codec.encode(cell)
        before = as_bytes(payload)
        cell ^= 0xFF
        expect(as_bytes(payload) == before, f"the payload of a cell of {kind} is a view of the cell")
        codec.encode(sample(codec, kind, seed=1))
        expect(as_bytes(payload) == before, f"the payload of a cell of {kind} changed when another cell was encoded")


@CODEC_RULES.rule("fills-output", "decode_into writes every byte of its output and not one beside it.")
def fills_output(subject: CodecSubject) -> None:
    for codec, kind, cell, payload in cases(subject, [(np.uint8, count) for count in (1, 31, 32, 33, 257, 3000)]):
        for fill in (0x00, 0xFF):  # a byte that was skipped shows in at least one of them
            out = GuardedRows(1, codec.cell.nbytes, fill=fill)
            codec.decode_into(payload, out.row)
            out.expect_bands_intact(f"decoding {codec.cell} of {kind}")
            missed = int((out.row != cell).sum())
            expect(not missed, f"{missed} bytes of {codec.cell} of {kind} kept what was there before")


@CODEC_RULES.rule(
    "any-buffer", "Cells, payloads and outputs may be any contiguous buffer, read-only and at any address."
)
def any_buffer(subject: CodecSubject) -> None:
    for codec, _, cell, payload in cases(subject, [(dtype, 600) for dtype in (np.uint8, np.float32, np.int64)]):
        for name, form in _forms(codec, cell):
            expect(as_bytes(codec.encode(form)) == payload, f"a cell given as {name} has another payload")
        odd = at_odd_offset(np.frombuffer(payload, np.uint8))
        for name, form in (("bytearray", bytearray(payload)), ("an odd address", odd)):
            expect((decoded(codec, form) == cell).all(), f"a payload given as {name} decodes to something else")
        for offset in range(1, 9):
            out = GuardedRows(1, codec.cell.nbytes, offset)
            codec.decode_into(payload, out.row)
            expect((out.row == cell).all(), f"an output {offset} bytes off alignment received something else")
            out.expect_bands_intact(f"decoding to an output {offset} bytes off alignment")
        typed = np.zeros(codec.cell.count, codec.cell.dtype)
        codec.decode_into(memoryview(payload), typed)
        expect(typed.tobytes() == cell.tobytes(), f"an output of {codec.cell.dtype.name} received something else")


def _forms(codec: Codec, cell: Bytes) -> Iterator[tuple[str, Any]]:
    typed = cell.view(codec.cell.dtype)
    yield "bytes", cell.tobytes()
    yield "bytearray", bytearray(cell.tobytes())
    yield "memoryview", memoryview(cell.tobytes())
    yield "an array of its dtype", typed
    yield "a two-dimensional array", typed.reshape(20, 30)
    yield "a read-only array at an odd address", at_odd_offset(cell)


@CODEC_RULES.rule(
    "wrong-size", "A cell or output of the wrong size, dtype or layout is refused before anything is touched."
)
def wrong_size(subject: CodecSubject) -> None:
    codec = subject.bind(np.uint16, 100)
    cell = sample(codec)
    payload = as_bytes(codec.encode(cell))
    for wrong in (np.zeros(0, np.uint8), cell[:-1], np.append(cell, np.uint8(0)), np.zeros(50, np.uint16)):
        expect_raises(CellMismatchError, f"a cell of {wrong.nbytes} bytes", codec.encode, wrong)
    for nbytes in (1, codec.cell.nbytes - 1, codec.cell.nbytes + 1):
        out = GuardedRows(1, nbytes)
        what = f"an output of {nbytes} bytes"
        expect_raises(CellMismatchError, what, codec.decode_into, payload, out.row)
        out.expect_untouched(what)
    for dtype in (np.int16, codec.cell.dtype.newbyteorder(), np.float16):
        other = np.zeros(codec.cell.count, dtype)
        expect_raises(CellMismatchError, f"a cell of {other.dtype}", codec.encode, other)
        expect_raises(CellMismatchError, f"an output of {other.dtype}", codec.decode_into, payload, other)
        expect(not other.any(), f"an output of {other.dtype} was written to although it was refused")
    strided = np.zeros(2 * codec.cell.nbytes, np.uint8)[::2]
    expect_raises(CellMismatchError, "a cell with gaps", codec.encode, strided)
    expect_raises(CellMismatchError, "an output with gaps", codec.decode_into, payload, strided)
    expect(not strided.any(), "an output with gaps was written to although it was refused")
    expect_raises(CellMismatchError, "a read-only output", codec.decode_into, payload, at_odd_offset(cell))
    expect((decoded(codec, payload) == cell).all(), "after refusing wrong sizes, the codec decodes something else")


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
    heap = MemoryHeap(len(rows) + 1)
    for cell, payload in enumerate(payloads):
        put(heap, [len(rows)], [bytes(100_000)])  # in between, so that the payloads end up in several segments
        put(heap, [cell], [payload])
    yield heap, *heap.locate(np.arange(len(rows)))


@CODEC_RULES.rule("batch-encode", "Encoding a batch gives the payloads of its cells, contiguous.")
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

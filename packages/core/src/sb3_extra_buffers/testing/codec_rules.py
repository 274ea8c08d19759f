"""Rules for codecs about cells and payloads: what comes back, single and in batches, and from damaged payloads."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np

from sb3_extra_buffers.codecs import Codec, decode_batch, encode_batch
from sb3_extra_buffers.errors import CellMismatchError, PayloadError
from sb3_extra_buffers.heaps.memory import MemoryHeap
from sb3_extra_buffers.memory import Bytes, ByteSource, FlatBytes, Indices
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject, as_bytes, cases, decoded, sample
from sb3_extra_buffers.testing.content import (
    CONTENTS,
    COUNTS,
    DTYPES,
    GuardedRows,
    at_odd_offset,
    expect_steady_memory,
    special_floats,
)
from sb3_extra_buffers.testing.heap_subject import put
from sb3_extra_buffers.testing.rule import NotApplicable, expect, expect_raises

#: Large cells are about counts that run over; every kind of content has been tried on small ones.
_LARGE = ("constant", "runs", "noise")
_CELLS = ((np.uint8, 33), (np.uint8, 3000), (np.float32, 700))
_DAMAGED_CELLS = ((np.uint8, 40), (np.uint8, 3000), (np.float32, 700))


@CODEC_RULES.rule("round-trip", "Decoding restores every bit of a cell, whatever its dtype, size and content.")
def round_trip(subject: CodecSubject) -> None:
    for dtype, count in itertools.product(DTYPES, COUNTS):
        for codec, kind, cell, payload in cases(subject, [(dtype, count)], _LARGE if count > 1000 else CONTENTS):
            wrong = np.flatnonzero(decoded(codec, payload) != cell)
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
    cells = itertools.product(DTYPES, (1, 2, 3, 7, 64, 255, 256, 257, 3000))
    for codec, kind, _, payload in cases(subject, cells, CONTENTS, seed=1):
        length, bound = len(payload), codec.max_encoded_nbytes
        expect(length <= bound, f"{codec.cell} of {kind} took {length} bytes, the bound is {bound}")


@CODEC_RULES.rule("repeatable", "Encoding a cell twice gives the same payload.")
def repeatable(subject: CodecSubject) -> None:
    for codec, kind, cell, payload in cases(subject, [(np.uint8, 5000)], CONTENTS):
        expect(as_bytes(codec.encode(cell)) == payload, f"two payloads of one cell of {kind} differ")


@CODEC_RULES.rule("cells-alike", "Cells that differ in one byte never get the content of each other, in any order.")
def cells_alike(subject: CodecSubject) -> None:
    for codec, kind, cell, _ in cases(subject, _CELLS[1:], CONTENTS):
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
    for codec, kind, cell, payload in cases(subject, _CELLS, CONTENTS):
        expect(codec.max_encoded_nbytes == codec.cell.nbytes, f"the size bound is {codec.max_encoded_nbytes}")
        expect(payload == cell.tobytes(), f"the payload of {codec.cell} of {kind} differs")


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
    for kind in ("runs", "noise"):
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
        typed = cell.view(codec.cell.dtype)
        forms: dict[str, Any] = {
            "bytes": cell.tobytes(),
            "bytearray": bytearray(cell.tobytes()),
            "memoryview": memoryview(cell.tobytes()),
            "an array of its dtype": typed,
            "a two-dimensional array": typed.reshape(20, 30),
            "a read-only array at an odd address": at_odd_offset(cell),
        }
        for name, form in forms.items():
            expect(as_bytes(codec.encode(form)) == payload, f"a cell given as {name} has another payload")
        odd = at_odd_offset(np.frombuffer(payload, np.uint8))
        for name, form in (("bytearray", bytearray(payload)), ("an odd address", odd)):
            expect((decoded(codec, form) == cell).all(), f"a payload given as {name} decodes to something else")
        for offset in range(1, 9):
            out = GuardedRows(1, codec.cell.nbytes, offset)
            codec.decode_into(payload, out.row)
            expect((out.row == cell).all(), f"an output {offset} bytes off alignment received something else")
            out.expect_bands_intact(f"decoding to an output {offset} bytes off alignment")
        typed = np.zeros_like(typed)
        codec.decode_into(memoryview(payload), typed)
        expect(typed.tobytes() == cell.tobytes(), f"an output of {codec.cell.dtype.name} received something else")


@CODEC_RULES.rule(
    "wrong-size", "A cell or output of the wrong size, dtype or layout is refused before anything is touched."
)
def wrong_size(subject: CodecSubject) -> None:
    codec, _, cell, payload = next(cases(subject, [(np.uint16, 100)]))
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


def _damaged(payload: bytes, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    random = np.random.default_rng(seed)
    size = len(payload)
    yield "emptied", b""
    for keep in sorted({1, size // 2, size - 1, *random.integers(0, size, 8).tolist()} - {0, size}):
        yield f"cut to {keep} of {size} bytes", payload[:keep]
    for extra in (b"\0", payload[:1], payload, bytes(random.integers(0, 256, 100, np.uint8))):
        yield f"extended by {len(extra)} bytes", payload + extra
    # Every bit of the header, where sizes and offsets are, and of the trailer; some of what is between.
    places = {*range(min(size, 16)), *range(max(0, size - 8), size), *random.integers(0, size, 24).tolist()}
    for place in sorted(places):
        for bit in range(8):
            flipped = bytearray(payload)
            flipped[place] ^= 1 << bit
            yield f"altered in bit {bit} of byte {place}", bytes(flipped)
    if size >= 16:
        for first, second in random.integers(0, size, (8, 2)).tolist():
            swapped = bytearray(payload)
            swapped[first], swapped[second] = swapped[second], swapped[first]
            yield f"altered by swapping bytes {first} and {second}", bytes(swapped)
        yield "zeroed in the middle", payload[: size // 2] + bytes(4) + payload[size // 2 + 4 :]
        repeated = payload[: size // 2] + payload[size // 2 - 4 : size // 2] + payload[size // 2 + 4 :]
        yield "altered by repeating a block", repeated
    yield "replaced by noise", bytes(random.integers(0, 256, size, np.uint8))


def _attack(codec: Codec, kind: str, damage: str, payload: bytes) -> Bytes | None:
    """Decode a damaged payload; return the cell, or ``None`` if it was refused."""
    out = GuardedRows(1, codec.cell.nbytes)
    what = f"the payload of {codec.cell} of {kind}, {damage},"
    try:
        codec.decode_into(payload, out.row)
        return out.row
    except PayloadError:
        return None
    except Exception as error:
        raise AssertionError(f"{what} raised {type(error).__name__} instead of PayloadError: {error}") from error
    finally:
        out.expect_bands_intact(what)


@CODEC_RULES.rule(
    "damage-contained", "A damaged payload raises PayloadError or decodes to a wrong cell, within bounds."
)
def damage_contained(subject: CodecSubject) -> None:
    for codec, kind, cell, payload in cases(subject, _DAMAGED_CELLS, _LARGE):
        for damage, damaged in _damaged(payload):
            _attack(codec, kind, damage, damaged)
            expect((decoded(codec, payload) == cell).all(), f"after a payload {damage}, sound ones decode wrongly")


@CODEC_RULES.rule(
    "damage-detected", "With detects_corruption, a damaged payload never decodes to a wrong cell in silence."
)
def damage_detected(subject: CodecSubject) -> None:
    for codec, kind, cell, payload in cases(subject, _DAMAGED_CELLS, _LARGE):
        if not codec.detects_corruption:
            raise NotApplicable("the codec does not declare detects_corruption")
        for damage, damaged in _damaged(payload):
            back = _attack(codec, kind, damage, damaged)
            silent = back is not None and not (back == cell).all()
            expect(not silent, f"the payload of {codec.cell} of {kind}, {damage}, gave a wrong cell without an error")


@CODEC_RULES.rule("never-empty", "A payload has at least one byte, and an empty one is refused.")
def never_empty(subject: CodecSubject) -> None:
    for codec, kind, _, payload in cases(subject, _DAMAGED_CELLS, _LARGE):
        expect(payload, f"{codec.cell} of {kind} has an empty payload")
        expect(_attack(codec, kind, "emptied", b"") is None, f"an empty payload decoded to {codec.cell}")


@CODEC_RULES.rule("bounded-memory", "A payload that holds far more than a cell is refused without expanding all of it.")
def bounded_memory(subject: CodecSubject) -> None:
    small, large = subject.bind(np.uint8, 70_000), subject.bind(np.uint8, 1 << 24)
    payload = as_bytes(large.encode(bytes(large.cell.nbytes)))
    out = GuardedRows(1, small.cell.nbytes)
    tracemalloc.start()
    try:
        expect_raises(PayloadError, f"a payload of {large.cell}", small.decode_into, payload, out.row)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    out.expect_bands_intact(f"a payload of {large.cell}")
    expect(peak < 8 * small.cell.nbytes, f"refusing a payload of {large.cell} took {peak} bytes of memory")


@CODEC_RULES.rule(
    "batch-damage", "A damaged payload in a batch is refused by its number if it is refused alone, and harms no other."
)
def batch_damage(subject: CodecSubject) -> None:
    codec = subject.bind(np.uint8, 300)
    truth = np.stack([sample(codec, "runs", seed) for seed in range(5)])
    payloads = [as_bytes(codec.encode(cell)) for cell in truth]
    for damage, damaged in _damaged(payloads[3]):
        refused_alone = _attack(codec, "runs", damage, damaged) is None
        batch = [*payloads[:3], damaged, payloads[4]]
        lengths = np.array([len(payload) for payload in batch])
        source = FlatBytes(np.frombuffer(b"".join(batch), np.uint8))
        out = GuardedRows(5, codec.cell.nbytes)
        number = None
        try:
            decode_batch(codec, source, lengths.cumsum() - lengths, lengths, out.rows)
            others = [0, 1, 2, 4]
            expect((out.rows[others] == truth[others]).all(), f"payload 3, {damage}, spoiled other rows of the batch")
        except PayloadError as error:
            number = error.index
        out.expect_bands_intact(f"a batch with a payload {damage}")
        expected = 3 if refused_alone else None
        expect(number == expected, f"with payload 3 {damage}, the batch named {number}, expected {expected}")

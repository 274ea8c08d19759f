"""Rules about the memory that a codec is handed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.errors import CellMismatchError
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject, as_bytes, decoded, sample
from sb3_extra_buffers.testing.memory import GuardedRows, at_odd_offset
from sb3_extra_buffers.testing.rule import expect, expect_raises

_KINDS = ("runs", "noise")


@CODEC_RULES.rule("input-unchanged", "Encoding and decoding do not write to their input.")
def input_unchanged(subject: CodecSubject) -> None:
    codec = subject.bind(np.uint8, 3000)
    for kind in _KINDS:
        cell = sample(codec, kind)
        before = cell.copy()
        payload = bytearray(as_bytes(codec.encode(cell)))
        expect((cell == before).all(), f"encoding changed a cell of {kind}")
        kept = bytes(payload)
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
    for count in (1, 31, 32, 33, 257, 3000):
        codec = subject.bind(np.uint8, count)
        for kind in _KINDS:
            cell = sample(codec, kind)
            payload = as_bytes(codec.encode(cell))
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
    for dtype in (np.uint8, np.float32, np.int64):
        codec = subject.bind(dtype, 600)
        for kind in _KINDS:
            cell = sample(codec, kind)
            payload = as_bytes(codec.encode(cell))
            for name, form in _forms(codec, cell):
                expect(as_bytes(codec.encode(form)) == payload, f"a cell given as {name} has another payload")
            for name, form in (("bytearray", bytearray(payload)), ("an odd address", at_odd_offset(_bytes(payload)))):
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


def _bytes(payload: bytes) -> Bytes:
    return np.frombuffer(payload, np.uint8)


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

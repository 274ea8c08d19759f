"""Rules for codecs about payloads that were damaged."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import numpy as np

from sb3_extra_buffers.codecs import Codec, decode_batch
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.memory import Bytes, FlatBytes
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject, as_bytes, cases, decoded, sample
from sb3_extra_buffers.testing.content import GuardedRows
from sb3_extra_buffers.testing.rule import NotApplicable, expect, expect_raises

_CELLS = ((np.uint8, 40), (np.uint8, 3000), (np.float32, 700))
_KINDS = ("constant", "runs", "noise")


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
        yield (
            "altered by repeating a block",
            payload[: size // 2] + payload[size // 2 - 4 : size // 2] + payload[size // 2 + 4 :],
        )
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
    for codec, kind, cell, payload in cases(subject, _CELLS, _KINDS):
        for damage, damaged in _damaged(payload):
            _attack(codec, kind, damage, damaged)
            expect((decoded(codec, payload) == cell).all(), f"after a payload {damage}, sound ones decode wrongly")


@CODEC_RULES.rule(
    "damage-detected", "With detects_corruption, a damaged payload never decodes to a wrong cell in silence."
)
def damage_detected(subject: CodecSubject) -> None:
    for codec, kind, cell, payload in cases(subject, _CELLS, _KINDS):
        if not codec.detects_corruption:
            raise NotApplicable("the codec does not declare detects_corruption")
        for damage, damaged in _damaged(payload):
            back = _attack(codec, kind, damage, damaged)
            silent = back is not None and not (back == cell).all()
            expect(not silent, f"the payload of {codec.cell} of {kind}, {damage}, gave a wrong cell without an error")


@CODEC_RULES.rule("never-empty", "A payload has at least one byte, and an empty one is refused.")
def never_empty(subject: CodecSubject) -> None:
    for codec, kind, _, payload in cases(subject, _CELLS, _KINDS):
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

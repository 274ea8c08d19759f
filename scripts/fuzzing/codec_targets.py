"""Every installed codec, alone and in batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sb3_extra_buffers import codecs
from sb3_extra_buffers.codecs import CellSpec, Codec, CodecSpec, bind, decode_batch
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.memory import Bytes, FlatBytes
from sb3_extra_buffers.testing.content import GuardedRows
from scripts.fuzzing.target import FindingError, Target, only_errors_of_ours

#: Of one word and of several, of a few elements and of so many that their ends take two bytes.
CELLS = (CellSpec(np.uint8, 40), CellSpec(np.uint8, 3000), CellSpec("<f4", 700), CellSpec("<i8", 300))
_CHECKED = CodecSpec("zstd", {"checksum": True})


def codec_targets() -> Iterator[Target]:
    """A target for each codec that is installed."""
    for name in codecs.names():
        yield _target(name, [bind(name, cell) for cell in CELLS])
    if "zstd" in codecs.names():
        yield _target("zstd with checksum", [bind(_CHECKED, cell) for cell in CELLS])


def _target(name: str, bound: list[Codec]) -> Target:
    """The first byte of an input says for which cells."""
    seeds, sound = [], []
    for number, codec in enumerate(bound):
        rows = _rows(codec.cell)
        payloads = [bytes(memoryview(codec.encode(row)).cast("B")) for row in rows]
        seeds += [bytes([number]) + payload for payload in payloads]
        sound.append((payloads, rows))

    def attack(data: bytes) -> None:
        number = data[0] % len(bound) if data else 0
        _attack(bound[number], data[1:], *sound[number])

    return Target(f"codec {name}", seeds, attack)


def _rows(cell: CellSpec) -> Bytes:
    """Cells of one value, with runs, and of noise."""
    rng = np.random.default_rng(cell.nbytes)
    runs = np.repeat(rng.integers(0, 5, cell.nbytes), rng.integers(1, 40, cell.nbytes))[: cell.nbytes]
    noise = rng.integers(0, 256, cell.nbytes)
    return np.stack([np.full(cell.nbytes, 7), runs, noise]).astype(np.uint8)


def _attack(codec: Codec, payload: bytes, sound: list[bytes], rows: Bytes) -> None:
    out = GuardedRows(1, codec.cell.nbytes)
    refused = True
    with only_errors_of_ours():
        codec.decode_into(payload, out.row)
        refused = False
    out.expect_bands_intact("decode_into")
    batch = [*sound, payload]
    lengths = np.array([len(part) for part in batch])
    both = GuardedRows(len(batch), codec.cell.nbytes)
    index: int | None = None
    with only_errors_of_ours():
        try:
            source = FlatBytes(np.frombuffer(b"".join(batch), np.uint8))
            decode_batch(codec, source, lengths.cumsum() - lengths, lengths, both.rows)
        except PayloadError as error:
            index = error.index
    both.expect_bands_intact("decode_batch")
    if (index is not None) != refused:
        raise FindingError(f"alone it is {'refused' if refused else 'decoded'}, in a batch it is not")
    if refused and index != len(sound):
        raise FindingError(f"payload {index} of the batch was refused, number {len(sound)} is the one")
    if not refused and not ((both.rows[:-1] == rows).all() and (both.rows[-1] == out.row).all()):
        raise FindingError("rows of the batch differ from what payloads are alone")

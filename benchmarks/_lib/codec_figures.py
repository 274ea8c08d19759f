"""Time per cell of a codec: single cells, batches, threads, and the bare library beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from rich import box
from rich.table import Table

from benchmarks._lib.bare_libraries import BareCalls, bare_calls
from benchmarks._lib.measure import WrongBytesError, interleaved_medians
from sb3_extra_buffers.codecs import Codec, decode_batch, encode_batch
from sb3_extra_buffers.heaps import Heap, create
from sb3_extra_buffers.memory import Bytes, Indices

#: Cells per timed call of every variant.
CELLS = 256
_SMALL_BATCH = 32
_MICRO = 1e6


@dataclass(frozen=True)
class CodecFigures:
    """Figures of one codec on one kind of frames. ``microseconds`` are per cell, by variant."""

    codec: str
    ratio: float
    microseconds: dict[str, float]

    def decode_to(self, library: str, threads: int) -> float | None:
        """Ratio of decoding a large batch to the bare library.

        :param library: ``"bare"``, or ``"delivered"`` if the result is copied to its row in the batch
        :param threads: threads of the codec; the library has one
        """
        alone = self.microseconds.get(f"decode_{library}")
        return None if alone is None else self.microseconds[f"decode_{CELLS}_threads_{threads}"] / alone

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        pairs = [(library, threads) for library in ("bare", "delivered") for threads in (1, 2)]
        ratios = {
            f"decode_to_{library}_threads_{threads}": self.decode_to(library, threads) for library, threads in pairs
        }
        return {"codec": self.codec, "ratio": self.ratio, "microseconds_per_cell": self.microseconds, **ratios}


def measure_codec(codec: Codec, rows: Bytes, picks: Indices, rounds: int) -> CodecFigures:
    """Store all rows in a heap, check every variant of decoding, then time all variants alternately.

    :param codec: a bound codec
    :param rows: shape ``(n, codec.cell.nbytes)``
    :param picks: the 256 rows to encode and decode, in this order
    :param rounds: repetitions of each variant
    """
    heap, truth = _stored(codec, rows), rows[picks]
    out = np.empty_like(truth)
    decoders = _decoders(codec, heap, picks, out)
    for name, decode in decoders.items():
        np.invert(truth, out=out)  # no byte is right by chance
        decode()
        if not np.array_equal(out, truth):
            raise WrongBytesError(f"{codec.spec}: {name} returned other bytes than were stored")
    # Alternating with the codecs: alone, a copy would find its bytes in the cache and look three times as fast.
    copy: Callable[[], None] = partial(np.copyto, out, truth)
    calls = {"memcpy": copy, **_encoders(codec, truth), **decoders}
    bare = bare_calls(codec.spec, codec.cell.nbytes)
    if bare is not None:
        calls.update(_bare(bare, truth, out))
    seconds = interleaved_medians(calls, rounds)
    microseconds = {name: duration / CELLS * _MICRO for name, duration in seconds.items()}
    return CodecFigures(str(codec.spec), rows.nbytes / heap.live, microseconds)


def _stored(codec: Codec, rows: Bytes) -> Heap:
    heap = create("memory", len(rows))
    for start in range(0, len(rows), _SMALL_BATCH):
        batch = rows[start : start + _SMALL_BATCH]
        room = heap.reserve(np.arange(start, start + len(batch)), len(batch) * codec.max_encoded_nbytes)
        heap.commit(encode_batch(codec, batch, room))
    return heap


def _encoders(codec: Codec, cells: Bytes) -> dict[str, Callable[[], None]]:
    room = np.empty(CELLS * codec.max_encoded_nbytes, np.uint8)

    def single() -> None:
        for cell in cells:
            codec.encode(cell)

    def batches(size: int) -> None:
        for start in range(0, CELLS, size):
            encode_batch(codec, cells[start : start + size], room)

    sizes = {f"encode_{size}": partial(batches, size) for size in (_SMALL_BATCH, CELLS)}
    return {"encode_1": single, **sizes}


def _decoders(codec: Codec, heap: Heap, picks: Indices, out: Bytes) -> dict[str, Callable[[], None]]:
    starts, lengths = heap.locate(picks)

    def single() -> None:
        for start, length, cell in zip(starts.tolist(), lengths.tolist(), out):
            codec.decode_into(heap.view(start, length), cell)

    def batches(size: int, threads: int) -> None:
        for start in range(0, CELLS, size):
            part = slice(start, start + size)
            decode_batch(codec, heap, starts[part], lengths[part], out[part], threads=threads)

    large = {f"decode_{CELLS}_threads_{threads}": partial(batches, CELLS, threads) for threads in (1, 2)}
    return {"decode_1": single, f"decode_{_SMALL_BATCH}": partial(batches, _SMALL_BATCH, 1), **large}


def _bare(bare: BareCalls, cells: Bytes, out: Bytes) -> dict[str, Callable[[], None]]:
    encode_call, decode_call = bare
    payloads = [encode_call(cell) for cell in cells]
    if any(decode_call(payload) != cell.tobytes() for payload, cell in zip(payloads, cells)):
        raise WrongBytesError("the bare library returned other bytes than were stored")

    def encode() -> None:
        for cell in cells:
            encode_call(cell)

    def decode() -> None:
        for payload in payloads:
            decode_call(payload)

    rows = [memoryview(row) for row in out]

    def deliver() -> None:
        for payload, row in zip(payloads, rows):
            row[:] = decode_call(payload)

    return {"encode_bare": encode, "decode_bare": decode, "decode_delivered": deliver}


#: Headings of the variants, in the order of the columns.
_VARIANTS = {
    "encode_1": "encode\n1",
    "encode_32": "encode\n32",
    "encode_256": "encode\n256",
    "encode_bare": "encode\nbare",
    "decode_1": "decode\n1",
    "decode_32": "decode\n32",
    "decode_256_threads_1": "decode\n256",
    "decode_256_threads_2": "decode\n256x2",
    "decode_bare": "decode\nbare",
    "decode_delivered": "bare\n+copy",
}
_NOTHING = "\N{EN DASH}"
_CAPTION = (
    "Median microseconds per cell, in calls of 1, 32 or 256 cells; 256x2: on two threads.\n"
    "bare: the library alone, its result dropped; +copy: its result copied to its row of the batch.\n"
    "to bare, to copy: decoding 256 cells on one or two threads, divided by those."
)


def codec_table(title: str, figures: Sequence[CodecFigures]) -> Table:
    """One row per codec, after the row of a plain copy.

    :param title: title of the table
    :param figures: in the order of the rows, at least one
    """
    table = Table(title=title, caption=_CAPTION, box=box.SIMPLE_HEAD, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.add_column("\ncodec", no_wrap=True)
    for heading in ("\nratio", *_VARIANTS.values(), "to bare\n1", "to bare\n2", "to copy\n1"):
        table.add_column(heading, justify="right", no_wrap=True)
    # The copy was timed beside each codec.
    copy = {"decode_256_threads_1": median(codec.microseconds["memcpy"] for codec in figures)}
    table.add_row("memcpy", _NOTHING, *(_cost(copy.get(name)) for name in _VARIANTS), *[_NOTHING] * 3)
    for codec in figures:
        costs = (_cost(codec.microseconds.get(name)) for name in _VARIANTS)
        factors = (codec.decode_to(*pair) for pair in (("bare", 1), ("bare", 2), ("delivered", 1)))
        table.add_row(codec.codec, f"{codec.ratio:.1f}", *costs, *map(_factor, factors))
    return table


def _cost(microseconds: float | None) -> str:
    if microseconds is None:
        return _NOTHING
    return f"{microseconds:.1f}" if microseconds < 100 else f"{microseconds:.0f}"


def _factor(factor: float | None) -> str:
    return _NOTHING if factor is None else f"{factor:.2f}"

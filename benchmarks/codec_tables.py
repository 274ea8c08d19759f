"""The figures of codecs as a table."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from rich import box
from rich.table import Table

from benchmarks.codec_measure import CodecFigures

#: The variants in the order of the columns, with their headings.
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
    "bare: the library alone, its result dropped; +copy: its result copied to its row, as a batch needs it.\n"
    "to bare, to copy: decoding 256 cells on one or two threads, divided by those."
)


def codec_table(title: str, figures: Sequence[CodecFigures]) -> Table:
    """One row per codec, under the row of a plain copy.

    :param title: what was encoded
    :param figures: in the order of the rows, at least one
    """
    table = Table(title=title, caption=_CAPTION, box=box.SIMPLE_HEAD, pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.add_column("\ncodec", no_wrap=True)
    for heading in ("\nratio", *_VARIANTS.values(), "to bare\n1", "to bare\n2", "to copy\n1"):
        table.add_column(heading, justify="right", no_wrap=True)
    # The copy took turns with each codec; between the codecs, the machine may have changed its pace.
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

"""``screen``: every installed codec at every level, on some observations. Cheap, so that few need a buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np

from sb3_extra_buffers import codecs
from sb3_extra_buffers.codecs import CellSpec, Codec, CodecSpec
from sb3_extra_buffers.errors import ExtraBuffersError, PayloadError
from sb3_extra_buffers.memory import Bytes

#: Enough to judge by; slow levels get fewer.
ROWS = 48
_MIN_ROWS = 4
_SECONDS_PER_CODEC = 0.25


@dataclass(frozen=True)
class Screened:
    """What a codec did to some observations.

    :param spec: the codec and its level
    :param ratio: how many times smaller it makes them
    :param encode_s: seconds to encode one of them
    :param decode_s: seconds to decode one of them
    """

    spec: CodecSpec
    ratio: float
    encode_s: float
    decode_s: float

    @property
    def seconds(self) -> float:
        """There and back."""
        return self.encode_s + self.decode_s


@dataclass(frozen=True)
class Failed:
    """A codec that cannot be loaded, or that failed on what it was given.

    :param name: which
    :param reason: the whole error
    """

    name: str
    reason: str


def specs(names: Sequence[str] | None = None) -> tuple[list[CodecSpec], list[Failed]]:
    """Every codec that compresses, at every level; and those that cannot be loaded.

    :param names: codecs to take, as people type them; without a level, all levels; ``None`` takes all that are
        installed, and forgives those that are broken
    """
    found: list[CodecSpec] = []
    failed: list[Failed] = []
    for name in codecs.names() if names is None else names:
        spec = codecs.parse(name)
        try:
            plugin = codecs.registry.load(spec.name)
            plugin.complete(spec)
        except ExtraBuffersError as error:
            if names is not None:
                raise
            failed.append(Failed(name, str(error)))
            continue
        if spec.name == "none":
            continue
        if plugin.levels is None or spec.params:
            found.append(spec)
            continue
        for low, high in plugin.levels.ranges:
            found.extend(CodecSpec(spec.name, {"level": level}) for level in _levels(low, high))
    return found, failed


def _levels(low: int, high: int) -> list[int]:
    """All levels of a range; of one with hundreds of them (zstd's fast levels), those that differ."""
    if high - low <= 64:
        return list(range(low, high + 1))
    wide = {-100, -50, -20, -10, -7, -5, -4, -3, -2, -1}
    return [level for level in range(max(low, -100), high + 1) if level >= 0 or level in wide]


def screen(
    wanted: Sequence[CodecSpec], cell: CellSpec, rows: Bytes, report: Callable[[int], object]
) -> tuple[list[Screened], list[Failed]]:
    """
    Try codecs on some observations.

    :param wanted: codecs and levels
    :param cell: what an observation holds
    :param rows: shape ``(n, cell.nbytes)``
    :param report: called with 1 after each
    """
    found, failed = [], []
    for spec in wanted:
        try:
            found.append(_try(spec, codecs.bind(spec, cell), rows))
        except Exception as error:  # whatever a codec does to data that it was not made for is a finding
            failed.append(Failed(str(spec), f"{type(error).__name__}: {error}"))
        report(1)
    return found, failed


def _try(spec: CodecSpec, codec: Codec, rows: Bytes) -> Screened:
    codec.encode(rows[0])  # what is compiled or allocated first is not the codec's speed
    payloads: list[bytes] = []
    # Medians: whoever else uses the machine takes some of the moments, not most of them.
    encoding: list[float] = []
    for row in rows:
        begin = perf_counter()
        payloads.append(bytes(codec.encode(row)))
        encoding.append(perf_counter() - begin)
        if sum(encoding) > _SECONDS_PER_CODEC and len(payloads) >= _MIN_ROWS:
            break
    out, decoding = np.empty(codec.cell.nbytes, np.uint8), []
    for row, payload in zip(rows, payloads):
        begin = perf_counter()
        codec.decode_into(payload, out)
        decoding.append(perf_counter() - begin)
        if not np.array_equal(out, row):
            raise PayloadError(codec.spec.name, len(payload), "an observation did not come back")
    ratio = len(payloads) * codec.cell.nbytes / sum(map(len, payloads))
    return Screened(spec, ratio, median(encoding), median(decoding))

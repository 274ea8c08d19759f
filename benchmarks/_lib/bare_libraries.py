"""The bare compression libraries behind the codecs: no checks, no heap, no output array.

Contexts are built once. Each function returns ``None`` if its library is not installed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from sb3_extra_buffers.codecs import CodecSpec

_GZIP_FRAME = 31


class BareCalls(NamedTuple):
    """One cell to one payload, and back."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], bytes]


def bare_calls(spec: CodecSpec, nbytes: int) -> BareCalls | None:
    """The library behind a codec at the level of ``spec``, or ``None`` if there is no library, or none installed.

    :param spec: complete, as a bound codec has it
    :param nbytes: size of a cell
    """
    make = _MAKERS.get(spec.name)
    return None if make is None else make(int(spec.params["level"] or 0), nbytes)


def _zlib(level: int, nbytes: int) -> BareCalls | None:
    def encode(cell: Any) -> bytes:
        # zlib.compress() takes window bits only since Python 3.11.
        compressor = zlib.compressobj(level, zlib.DEFLATED, _GZIP_FRAME)
        return compressor.compress(cell) + compressor.flush()

    return BareCalls(encode, lambda payload: zlib.decompress(payload, _GZIP_FRAME, nbytes))


def _isal(level: int, nbytes: int) -> BareCalls | None:
    try:
        from isal import isal_zlib
    except ImportError:
        return None
    return BareCalls(
        lambda cell: isal_zlib.compress(cell, level, _GZIP_FRAME),
        lambda payload: isal_zlib.decompress(payload, _GZIP_FRAME, nbytes),
    )


def _lz4_block(level: int, nbytes: int) -> BareCalls | None:
    try:
        from lz4 import block
    except ImportError:
        return None
    mode: dict[str, Any] = {"mode": "default"}
    if level > 0:
        mode = {"mode": "high_compression", "compression": level}
    elif level < 0:
        mode = {"mode": "fast", "acceleration": -level}
    return BareCalls(
        lambda cell: block.compress(cell, store_size=False, **mode),
        lambda payload: block.decompress(payload, uncompressed_size=nbytes),
    )


def _lz4_frame(level: int, _nbytes: int) -> BareCalls | None:
    try:
        from lz4 import frame
    except ImportError:
        return None
    return BareCalls(lambda cell: frame.compress(cell, compression_level=level), frame.decompress)


def _zstd(level: int, _nbytes: int) -> BareCalls | None:
    try:
        import zstandard
    except ImportError:
        return None
    return BareCalls(zstandard.ZstdCompressor(level).compress, zstandard.ZstdDecompressor().decompress)


_MAKERS: dict[str, Callable[[int, int], BareCalls | None]] = {
    "gzip": _zlib,
    "igzip": _isal,
    "lz4-block": _lz4_block,
    "lz4-frame": _lz4_frame,
    "zstd": _zstd,
}

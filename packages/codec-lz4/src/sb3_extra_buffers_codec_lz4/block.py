"""``lz4-block``: bare LZ4 blocks through the ``lz4`` library."""

from __future__ import annotations

from typing import Any

import lz4.block

from sb3_extra_buffers.codecs import Automatic, ByteCodec, CellSpec, CodecPlugin, CodecSpec, Levels, hookimpl
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.memory import Bytes, ByteSource, Indices, check_rows
from sb3_extra_buffers_codec_lz4 import native

# The library caps the acceleration here.
_MAX_ACCELERATION = 65537
# Measured on images of 9 to 27 KB: below this, a second thread costs more than it saves.
_MIN_NBYTES_PER_THREAD = 768 << 10


def _mode(level: int) -> dict[str, Any]:
    """Three modes on one scale: below zero trades size for speed, above zero speed for size."""
    if level > 0:
        return {"mode": "high_compression", "compression": level}
    return {"mode": "fast", "acceleration": -level} if level < 0 else {"mode": "default"}


class Lz4BlockCodec(ByteCodec):
    """One LZ4 block per cell, without the size in front: the cell knows it."""

    library_errors = (lz4.block.LZ4BlockError,)

    def __init__(self, spec: CodecSpec, cell: CellSpec) -> None:
        super().__init__(spec, cell)
        self._mode = _mode(self.level)
        self._decoder = native.decoder() if cell.nbytes <= native.MAX_NBYTES else None
        self.min_nbytes_per_thread = None if self._decoder is None else _MIN_NBYTES_PER_THREAD

    def compress(self, cell: memoryview) -> bytes:
        payload: bytes = lz4.block.compress(cell, store_size=False, **self._mode)
        return payload

    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        self.fill(out, lz4.block.decompress(payload, uncompressed_size=len(out)), payload)

    def decode_batch(self, source: ByteSource, starts: Indices, lengths: Indices, out: Bytes, /) -> None:
        if self._decoder is None:
            super().decode_batch(source, starts, lengths, out)
            return
        check_rows(self.spec.name, "out", out, len(starts), self.cell.nbytes, writable=True)
        failed = self._decoder(source.addresses(starts, lengths), lengths, out)
        if failed >= 0:
            # Decoded alone, the payload raises what is wrong with it.
            part = slice(failed, failed + 1)
            try:
                super().decode_batch(source, starts[part], lengths[part], out[part])
            except PayloadError as error:
                error.index = failed
                raise


def _way() -> str:
    return "" if native.library() is not None else " (through Python: this build of lz4 does not export its functions)"


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1,
        factory=Lz4BlockCodec,
        summary=f"LZ4 blocks: the fastest decoder among the general codecs{_way()}",
        levels=Levels(default=9, ranges=((-_MAX_ACCELERATION, 12),)),
        automatic=Automatic(decode_cost=10, levels=(0,), call_cost=8_000),
    )

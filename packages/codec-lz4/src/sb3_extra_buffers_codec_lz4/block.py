"""``lz4-block``: bare LZ4 blocks through the ``lz4`` library."""

from __future__ import annotations

from typing import Any

import lz4.block

from sb3_extra_buffers.codecs import Automatic, ByteCodec, CellSpec, CodecPlugin, CodecSpec, Levels, hookimpl

# The library caps the acceleration here.
_MAX_ACCELERATION = 65537


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

    def compress(self, cell: memoryview) -> bytes:
        payload: bytes = lz4.block.compress(cell, store_size=False, **self._mode)
        return payload

    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        self.fill(out, lz4.block.decompress(payload, uncompressed_size=len(out)), payload)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1,
        factory=Lz4BlockCodec,
        summary="LZ4 blocks: the fastest decoder among the general codecs",
        levels=Levels(default=9, ranges=((-_MAX_ACCELERATION, 12),)),
        automatic=Automatic(decode_cost=10, levels=(0,)),
    )

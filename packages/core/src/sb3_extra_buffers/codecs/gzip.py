"""``gzip``: the standard library's deflate in a gzip frame, with its checksum."""

from __future__ import annotations

import zlib

from sb3_extra_buffers.codecs.byte_codec import ByteCodec
from sb3_extra_buffers.codecs.plugin import Automatic, CodecPlugin, Levels
from sb3_extra_buffers.registry import hookimpl

# zlib writes the frame itself with these window bits: no Python-level header, no time stamp, so equal cells give
# equal payloads; and the size in its trailer counts bytes, where gzip.compress once counted elements.
_GZIP_FRAME = 16 + zlib.MAX_WBITS


class GzipCodec(ByteCodec):
    """Deflate at a level from 0 (stored) to 9 (smallest)."""

    detects_corruption = True
    min_nbytes_per_thread = 1 << 19
    library_errors = (zlib.error,)

    def compress(self, cell: memoryview) -> bytes:
        compressor = zlib.compressobj(self.level, zlib.DEFLATED, _GZIP_FRAME)
        return compressor.compress(cell) + compressor.flush()

    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        self.drain(zlib.decompressobj(_GZIP_FRAME), payload, out)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1,
        factory=GzipCodec,
        summary="Deflate from the standard library, checksummed",
        levels=Levels(default=9, ranges=((0, 9),)),
        automatic=Automatic(decode_cost=40, levels=(1, 6)),
    )

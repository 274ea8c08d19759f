"""``igzip``: Intel's accelerated deflate through the ``isal`` library, in a gzip frame with its checksum."""

from __future__ import annotations

from isal import isal_zlib

from sb3_extra_buffers.codecs import Automatic, ByteCodec, CodecPlugin, Levels, hookimpl

_GZIP_FRAME = 16 + isal_zlib.MAX_WBITS


class IgzipCodec(ByteCodec):
    """Deflate at a level from 0 (fastest) to 3 (most effort). Any gzip reader can read its frames."""

    detects_corruption = True
    min_nbytes_per_thread = 1 << 19
    library_errors = (isal_zlib.error,)  # type: ignore[assignment]  # typed as an instance by the library's stubs

    def compress(self, cell: memoryview) -> bytes:
        return isal_zlib.compress(cell, self.level, _GZIP_FRAME)

    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        self.drain(isal_zlib.decompressobj(_GZIP_FRAME), payload, out)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1,
        factory=IgzipCodec,
        summary="Deflate accelerated by ISA-L, checksummed",
        levels=Levels(default=3, ranges=((0, 3),)),
        automatic=Automatic(decode_cost=28, levels=(1,)),
    )

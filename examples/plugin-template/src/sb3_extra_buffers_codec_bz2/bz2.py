"""``bz2``: the standard library's bzip2, with the checksum of its stream."""

from __future__ import annotations

import bz2

from sb3_extra_buffers.codecs import Automatic, ByteCodec, CodecPlugin, Levels, hookimpl


class Bz2Codec(ByteCodec):
    """One bzip2 stream per cell. The level is the block size in units of 100 kB, so small cells gain nothing by it."""

    detects_corruption = True
    min_nbytes_per_thread = 1 << 16
    library_errors = (OSError,)

    def compress(self, cell: memoryview) -> bytes:
        return bz2.compress(cell, self.level)

    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        self.drain(bz2.BZ2Decompressor(), payload, out)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1,
        factory=Bz2Codec,
        summary="bzip2 from the standard library, checksummed",
        levels=Levels(default=9, ranges=((1, 9),)),
        automatic=Automatic(decode_cost=105, levels=(1, 9)),
    )

"""``bz2``: the standard library's bzip2, with the checksum of its stream."""

from __future__ import annotations

import bz2

from sb3_extra_buffers.codecs import ByteCodec, CellSpec, CodecPlugin, CodecSpec, Levels, hookimpl
from sb3_extra_buffers.errors import PayloadError


class Bz2Codec(ByteCodec):
    """One bzip2 stream per cell. The level is the block size in units of 100 kB, so small cells gain nothing by it."""

    detects_corruption = True
    min_nbytes_per_thread = 1 << 16
    library_errors = (OSError,)

    def __init__(self, spec: CodecSpec, cell: CellSpec) -> None:
        super().__init__(spec, cell)
        self._level = int(spec.params["level"] or 0)

    def compress(self, cell: memoryview) -> bytes:
        return bz2.compress(cell, self._level)

    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        decompressor = bz2.BZ2Decompressor()
        # One byte more than fits shows a payload that is too long without expanding all of it.
        data = decompressor.decompress(payload, max_length=len(out) + 1)
        if not decompressor.eof or decompressor.unused_data:
            raise PayloadError(self.spec.name, len(payload), "its bzip2 stream does not end where the payload ends")
        self.fill(out, data, payload)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1,
        factory=Bz2Codec,
        summary="bzip2 from the standard library, checksummed",
        levels=Levels(default=9, ranges=((1, 9),)),
    )

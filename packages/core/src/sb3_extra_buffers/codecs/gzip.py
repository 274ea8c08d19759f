"""``gzip``: the standard library's deflate in a gzip frame, with its checksum."""

from __future__ import annotations

import zlib

from sb3_extra_buffers.codecs.byte_codec import ByteCodec
from sb3_extra_buffers.codecs.cell import CellSpec
from sb3_extra_buffers.codecs.plugin import CodecPlugin, Levels
from sb3_extra_buffers.codecs.spec import CodecSpec
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.registry import hookimpl

# zlib writes the frame itself with these window bits: no Python-level header, no time stamp, so equal cells give
# equal payloads; and the size in its trailer counts bytes, where gzip.compress once counted elements.
_GZIP_FRAME = 16 + zlib.MAX_WBITS


class GzipCodec(ByteCodec):
    """Deflate at a level from 0 (stored) to 9 (smallest)."""

    detects_corruption = True
    min_nbytes_per_thread = 1 << 19
    library_errors = (zlib.error,)

    def __init__(self, spec: CodecSpec, cell: CellSpec) -> None:
        super().__init__(spec, cell)
        self._level = int(spec.params["level"])  # type: ignore[arg-type]

    def compress(self, cell: memoryview) -> bytes:
        compressor = zlib.compressobj(self._level, zlib.DEFLATED, _GZIP_FRAME)
        return compressor.compress(cell) + compressor.flush()

    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        decompressor = zlib.decompressobj(_GZIP_FRAME)
        # One byte more than fits shows a payload that is too long without inflating all of it.
        data = decompressor.decompress(payload, len(out) + 1)
        if not decompressor.eof or decompressor.unused_data:
            raise PayloadError(self.spec.name, len(payload), "its gzip frame does not end where the payload ends")
        self.fill(out, data, payload)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1,
        factory=GzipCodec,
        summary="Deflate from the standard library, checksummed",
        levels=Levels(default=9, ranges=((0, 9),)),
    )

"""``lz4-frame``: LZ4 frames through the ``lz4`` library."""

from __future__ import annotations

import threading

import lz4.frame

from sb3_extra_buffers.codecs import ByteCodec, CellSpec, CodecPlugin, CodecSpec, Levels, hookimpl
from sb3_extra_buffers.errors import PayloadError

# A frame at level -n is made with acceleration n + 1, and the library caps the acceleration at 65537.
_MIN_LEVEL = -65536


class _Context(threading.local):
    """One decompression context per thread, kept from frame to frame."""

    def __init__(self) -> None:
        self.decompression = lz4.frame.create_decompression_context()


class Lz4FrameCodec(ByteCodec):
    """One LZ4 frame per cell, with its content size and, if ``checksum=True`` asks for it, a checksum."""

    library_errors = (RuntimeError,)

    def __init__(self, spec: CodecSpec, cell: CellSpec) -> None:
        self.detects_corruption = bool(spec.params["checksum"])
        super().__init__(spec, cell)
        self._context = _Context()

    def compress(self, cell: memoryview) -> bytes:
        payload: bytes = lz4.frame.compress(
            cell, compression_level=self.level, content_checksum=self.detects_corruption
        )
        return payload

    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        context = self._context.decompression
        done = False
        try:
            # The bound keeps a damaged header from asking for more memory than a cell.
            data, read, done = lz4.frame.decompress_chunk(context, payload, max_length=len(out) + 1)
        finally:
            if not done:
                lz4.frame.reset_decompression_context(context)
        if not done or read != len(payload):
            raise PayloadError(self.spec.name, len(payload), "its frame does not end where the payload ends")
        self.fill(out, data, payload)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1,
        factory=Lz4FrameCodec,
        summary="LZ4 frames: fast, and readable by every LZ4 tool",
        levels=Levels(default=0, ranges=((_MIN_LEVEL, 16),)),
        parameters={"checksum": False},
    )

"""``none``: the cell itself is the payload."""

from __future__ import annotations

from sb3_extra_buffers.codecs.byte_codec import ByteCodec
from sb3_extra_buffers.codecs.plugin import CodecPlugin
from sb3_extra_buffers.codecs.protocol import CellSpec, CodecSpec
from sb3_extra_buffers.registry import hookimpl


class NoneCodec(ByteCodec):
    """Stores every cell raw: the byte codec whose library never finds anything to save."""

    def compress(self, cell: memoryview) -> memoryview:
        return cell

    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        self.fill(out, payload, payload)


def uncompressed(cell: CellSpec) -> NoneCodec:
    """The codec for cells that a heap stores as they are."""
    return NoneCodec(CodecSpec("none"), cell)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1, factory=NoneCodec, summary="No compression: the raw bytes of each cell", identity=True
    )

"""What bytes become: the codec contract, the built-in codecs, and the way from a name to a bound codec."""

from sb3_extra_buffers.codecs.batch import decode_batch, encode_batch
from sb3_extra_buffers.codecs.binding import CodecLike, bind, names, parse, registry
from sb3_extra_buffers.codecs.byte_codec import ByteCodec
from sb3_extra_buffers.codecs.cell import CellSpec
from sb3_extra_buffers.codecs.plugin import CODEC_PROTOCOL, Automatic, CodecPlugin, Levels
from sb3_extra_buffers.codecs.protocol import BatchCodec, Codec
from sb3_extra_buffers.codecs.spec import CodecSpec
from sb3_extra_buffers.registry import hookimpl

__all__ = [
    "CODEC_PROTOCOL",
    "Automatic",
    "BatchCodec",
    "ByteCodec",
    "CellSpec",
    "Codec",
    "CodecLike",
    "CodecPlugin",
    "CodecSpec",
    "Levels",
    "bind",
    "decode_batch",
    "encode_batch",
    "hookimpl",
    "names",
    "parse",
    "registry",
]

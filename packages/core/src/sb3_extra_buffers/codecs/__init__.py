"""Codecs turn cells into payloads and back: the contract, the built-in codecs, and the registry."""

from sb3_extra_buffers.codecs.batch import decode_batch, encode_batch
from sb3_extra_buffers.codecs.byte_codec import ByteCodec
from sb3_extra_buffers.codecs.plugin import (
    CODEC_PROTOCOL,
    Automatic,
    CodecLike,
    CodecPlugin,
    Levels,
    bind,
    names,
    parse,
    registry,
)
from sb3_extra_buffers.codecs.protocol import BatchCodec, CellSpec, Codec, CodecSpec, ThreadedCodec
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
    "ThreadedCodec",
    "bind",
    "decode_batch",
    "encode_batch",
    "hookimpl",
    "names",
    "parse",
    "registry",
]

"""``rle`` by its compiled twin, where that is installed; by its own name, because the payloads are the same."""

from __future__ import annotations

from typing import Any, cast

from sb3_extra_buffers.codecs import BatchCodec, CellSpec, Codec, CodecLike, CodecSpec, bind, registry
from sb3_extra_buffers.errors import PluginError
from sb3_extra_buffers.memory import Buffer, Bytes, ByteSource, Indices

_PLAIN, _COMPILED = "rle", "rle-jit"


def bind_compiled(codec: CodecLike, cell: CellSpec) -> Codec:
    """What :func:`~sb3_extra_buffers.codecs.bind` does; runs are encoded by numba where it works.

    :param codec: what was asked for
    :param cell: what it shall encode
    """
    found = bind(codec, cell)
    if found.spec.name != _PLAIN or not _works(_COMPILED):
        return found
    return CompiledTwin(found.spec, cast("BatchCodec", bind(_COMPILED, cell)))


def _works(codec: str) -> bool:
    try:
        registry.load(codec)
    except PluginError:
        return False
    return True


class CompiledTwin:
    """A codec that does what another one does for it.

    It is saved and pickled as what was asked for. Who loads it may have no numba, and binds it again.

    :param spec: what was asked for
    :param twin: who does the work
    """

    def __init__(self, spec: CodecSpec, twin: BatchCodec) -> None:
        self.spec = spec
        self.cell = twin.cell
        self.max_encoded_nbytes = twin.max_encoded_nbytes
        self.detects_corruption = twin.detects_corruption
        self.min_nbytes_per_thread = getattr(twin, "min_nbytes_per_thread", None)
        self._twin = twin

    def encode(self, cell: Buffer, /) -> Buffer:
        return self._twin.encode(cell)

    def decode_into(self, payload: Buffer, out: Buffer, /) -> None:
        self._twin.decode_into(payload, out)

    def encode_batch(self, rows: Bytes, out: Bytes, /) -> Indices:
        return self._twin.encode_batch(rows, out)

    def decode_batch(self, source: ByteSource, starts: Indices, lengths: Indices, out: Bytes, /) -> None:
        self._twin.decode_batch(source, starts, lengths, out)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.spec} for {self.cell}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return bind_compiled, (self.spec, self.cell)

"""A base for codecs around a compression library: they supply two calls and inherit the rest of the contract."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

from sb3_extra_buffers.codecs.batch import decode_each, encode_each
from sb3_extra_buffers.codecs.plugin import bind
from sb3_extra_buffers.codecs.protocol import CellSpec, CodecSpec
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.memory import Buffer, Bytes, ByteSource, Indices, check_room, check_rows, view_bytes

_CRC_NBYTES = 4


class Decompressor(Protocol):
    """What ``zlib.decompressobj()``, ``bz2.BZ2Decompressor()`` and ``lzma.LZMADecompressor()`` have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: memoryview, max_length: int, /) -> bytes: ...


class ByteCodec(ABC):
    """Size checks, raw storage, error translation, pickling and batches around two calls to a library.

    A payload of exactly ``max_encoded_nbytes`` is the raw cell, any shorter one was compressed by the library: the
    length distinguishes them, so that no byte is needed. A codec that promises to detect corruption appends a CRC to
    the raw cell, because there is no library frame around it.

    :param spec: name and checked parameters, as the plugin's factory gets them
    :param cell: the cell to bind to
    """

    #: Whether a damaged payload is certain to raise. May be set per instance, before ``super().__init__``.
    detects_corruption: bool = False
    #: Decoded bytes per thread from which a second thread is faster; ``None`` for a codec that does not gain from it.
    min_nbytes_per_thread: int | None = None
    #: What the library raises for a payload that it cannot decode.
    library_errors: ClassVar[tuple[type[Exception], ...]] = ()

    def __init__(self, spec: CodecSpec, cell: CellSpec) -> None:
        self.spec = spec
        self.cell = cell
        level = spec.params.get("level")
        #: The level that the codec was bound with; 0 for a codec without levels.
        self.level = level if isinstance(level, int) else 0
        self.max_encoded_nbytes = cell.nbytes + (_CRC_NBYTES if self.detects_corruption else 0)

    @abstractmethod
    def compress(self, cell: memoryview) -> Buffer:
        """Compress ``cell.nbytes`` bytes. The result may have any length; one that saves nothing is discarded."""

    @abstractmethod
    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        """Decompress into ``out``: directly where the library can, through :meth:`drain` or :meth:`fill` where not.

        Raise one of ``library_errors`` or :class:`PayloadError` for a payload that :meth:`compress` did not make, and
        never let a damaged one make the library allocate much more than a cell.
        """

    def drain(self, decompressor: Decompressor, payload: memoryview, out: memoryview) -> None:
        """Expand one stream with a decompressor object of zlib, bz2 or lzma, and no more than fits.

        :param decompressor: a new one
        :param payload: a whole stream, with nothing after it
        :param out: where the cell goes
        """
        # One byte more than fits reveals a payload that is too long without expanding all of it.
        data = decompressor.decompress(payload, len(out) + 1)
        if not decompressor.eof or decompressor.unused_data:
            raise PayloadError(self.spec.name, len(payload), "its stream does not end where the payload ends")
        self.fill(out, data, payload)

    def fill(self, out: memoryview, data: Buffer, payload: memoryview) -> None:
        """Copy the result of a library into ``out``, if it has the size of the cell.

        :param out: where the cell goes
        :param data: the result
        :param payload: the payload, for the error
        """
        if len(data) != len(out):
            raise PayloadError(self.spec.name, len(payload), f"it holds {len(data)} bytes, the cell has {len(out)}")
        out[:] = data

    # The contract, in terms of the two calls above.

    def encode(self, cell: Buffer, /) -> Buffer:
        view = self.cell.view(self.spec.name, "cell", cell)
        payload = self._encode(view)
        return bytes(view) if payload is view else payload

    def decode_into(self, payload: Buffer, out: Buffer, /) -> None:
        target = self.cell.view(self.spec.name, "out", out, writable=True)
        self._decode(view_bytes(self.spec.name, "payload", payload), target)

    def encode_batch(self, rows: Bytes, out: Bytes, /) -> Indices:
        check_rows(self.spec.name, "rows", rows, None, self.cell.nbytes)
        check_room(self.spec.name, "out", out, len(rows) * self.max_encoded_nbytes)
        return encode_each(self._encode, self._cells(rows), out)

    def decode_batch(self, source: ByteSource, starts: Indices, lengths: Indices, out: Bytes, /) -> None:
        check_rows(self.spec.name, "out", out, len(starts), self.cell.nbytes, writable=True)
        decode_each(self._decode, source, starts, lengths, self._cells(out))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.spec} for {self.cell}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Contexts and compiled code cannot be pickled; the name and the parameters can.
        return bind, (self.spec, self.cell)

    def _cells(self, rows: Bytes) -> list[memoryview]:
        flat, nbytes = memoryview(rows.reshape(-1)), self.cell.nbytes
        return [flat[begin : begin + nbytes] for begin in range(0, len(flat), nbytes)]

    def _encode(self, cell: memoryview) -> Buffer:
        payload = self.compress(cell)
        if len(payload) < self.max_encoded_nbytes:
            return payload
        return bytes(cell) + _checksum(cell) if self.detects_corruption else cell

    def _decode(self, payload: memoryview, out: memoryview) -> None:
        nbytes = len(payload)
        if 0 < nbytes < self.max_encoded_nbytes:
            try:
                self.decompress_into(payload, out)
            except PayloadError:
                raise  # also where library_errors has ValueError in it
            except self.library_errors as error:
                raise PayloadError(self.spec.name, nbytes, str(error)) from error
            return
        if nbytes != self.max_encoded_nbytes:
            longer = f"no payload of this codec is longer than {self.max_encoded_nbytes} bytes"
            raise PayloadError(self.spec.name, nbytes, longer if nbytes else "it is empty")
        cell = payload[: len(out)]
        if self.detects_corruption and payload[len(out) :] != _checksum(cell):
            raise PayloadError(self.spec.name, nbytes, "the checksum of the raw cell does not match")
        out[:] = cell


def _checksum(cell: memoryview) -> bytes:
    return zlib.crc32(cell).to_bytes(_CRC_NBYTES, "little")

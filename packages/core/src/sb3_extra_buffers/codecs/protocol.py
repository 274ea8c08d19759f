"""The codec contract.

A codec turns the bytes of one *cell* into a *payload* and back, without losing a bit. It is bound to a cell (dtype
and element count) before use, so everything that can be checked, allocated or compiled once is done there.

The types below give the signatures. The rules in :mod:`sb3_extra_buffers.testing` check the behaviour.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from sb3_extra_buffers.codecs.spec import CellSpec, CodecSpec
from sb3_extra_buffers.memory import Buffer, Bytes, ByteSource, Indices


@runtime_checkable
class Codec(Protocol):
    """One codec, bound to one cell.

    Methods may be called from several threads at once, and after a fork. A codec pickles (as its spec and cell).
    """

    @property
    def spec(self) -> CodecSpec:
        """Name and complete parameters: binding it again gives a codec that decodes every payload of this one."""

    @property
    def cell(self) -> CellSpec:
        """The cell that this codec encodes and decodes."""

    @property
    def max_encoded_nbytes(self) -> int:
        """A hard bound on the size of a payload, for *any* content. An incompressible cell is stored raw."""

    @property
    def detects_corruption(self) -> bool:
        """Whether a payload that was cut, extended or altered is certain to raise rather than give a wrong cell."""

    def encode(self, cell: Buffer, /) -> Buffer:
        """Return the payload of a cell: at least one byte. The input is neither changed nor kept.

        :param cell: exactly ``self.cell.nbytes`` bytes
        """

    def decode_into(self, payload: Buffer, out: Buffer, /) -> None:
        """Write the cell into ``out``: all of it and nothing beside it.

        :param payload: what :meth:`encode` returned
        :param out: exactly ``self.cell.nbytes`` writable bytes
        :raise PayloadError: if the payload cannot be decoded; the content of ``out`` is then undefined
        """


# Optional capabilities. A codec has one if it has its members.


@runtime_checkable
class ThreadedCodec(Protocol):
    """A codec that releases the interpreter lock, so that a batch may be decoded by several threads."""

    @property
    def min_nbytes_per_thread(self) -> int | None:
        """Decoded bytes per thread from which another thread is faster; ``None`` if it never is."""


@runtime_checkable
class BatchCodec(Codec, Protocol):
    """A codec with a faster way to handle many cells. Without both methods, the core loops over single cells."""

    def encode_batch(self, rows: Bytes, out: Bytes, /) -> Indices:
        """Write the payloads of all rows into ``out``, contiguous, and return their lengths.

        :param rows: shape ``(n, cell.nbytes)``, C-contiguous
        :param out: one-dimensional, with room for ``n * max_encoded_nbytes`` bytes
        """

    def decode_batch(self, source: ByteSource, starts: Indices, lengths: Indices, out: Bytes, /) -> None:
        """Decode ``n`` payloads into the rows of ``out``. Positions may repeat and come in any order.

        :param source: where the payloads live
        :param starts: their positions in ``source``
        :param lengths: their sizes in bytes
        :param out: shape ``(n, cell.nbytes)``, C-contiguous; row ``i`` receives payload ``i``
        """

"""``rle-jit``: core's run-length codec, compiled by numba. Each reads what the other wrote, byte for byte."""

from __future__ import annotations

from typing import Any

import numpy as np

from sb3_extra_buffers.codecs import Automatic, CellSpec, CodecPlugin, CodecSpec, bind, hookimpl
from sb3_extra_buffers.codecs.rle import end_dtype
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.memory import Buffer, Bytes, ByteSource, Indices, check_room, check_rows, view_bytes
from sb3_extra_buffers_codec_rle_numba.kernels import decode_rows, encode_rows


class RleJitCodec:
    """Run-length encoding at memory speed.

    :param spec: name and parameters
    :param cell: the cell to bind to
    """

    detects_corruption = False
    min_nbytes_per_thread = 1 << 22

    def __init__(self, spec: CodecSpec, cell: CellSpec) -> None:
        self.spec = spec
        self.cell = cell
        self.max_encoded_nbytes = cell.nbytes
        self._item = np.uint64(cell.dtype.itemsize)
        self._width = np.uint64(end_dtype(cell.count).itemsize)

    def encode(self, cell: Buffer, /) -> Bytes:
        view = self.cell.view(self.spec.name, "cell", cell)
        payload = np.empty(self.max_encoded_nbytes, np.uint8)
        length = self.encode_batch(np.frombuffer(view, np.uint8)[np.newaxis], payload)[0]
        return payload[:length].copy()  # the copy gives back what was reserved for the worst case

    def decode_into(self, payload: Buffer, out: Buffer, /) -> None:
        target = self.cell.view(self.spec.name, "out", out, writable=True)
        source = np.frombuffer(view_bytes(self.spec.name, "payload", payload), np.uint8)
        address, length = np.array([source.ctypes.data], np.uint64), np.array([len(source)], np.int64)
        if decode_rows(address, length, self._item, self._width, np.frombuffer(target, np.uint8)[np.newaxis]) >= 0:
            raise self._damaged(len(source))

    def encode_batch(self, rows: Bytes, out: Bytes, /) -> Indices:
        # The kernels write where they are told to, so this is checked here even if the caller has checked it before.
        check_rows(self.spec.name, "rows", rows, None, self.cell.nbytes)
        check_room(self.spec.name, "out", out, len(rows) * self.max_encoded_nbytes)
        lengths = np.empty(len(rows), np.int64)
        encode_rows(rows, self._item, self._width, out, np.empty(self.cell.nbytes, np.uint8), lengths)
        return lengths

    def decode_batch(self, source: ByteSource, starts: Indices, lengths: Indices, out: Bytes, /) -> None:
        check_rows(self.spec.name, "out", out, len(starts), self.cell.nbytes, writable=True)
        index = decode_rows(source.addresses(starts, lengths), lengths, self._item, self._width, out)
        if index >= 0:
            raise self._damaged(int(lengths[index]), int(index))

    def _damaged(self, nbytes: int, index: int | None = None) -> PayloadError:
        problem = f"its runs do not add up to {self.cell.count} elements"
        return PayloadError(self.spec.name, nbytes, problem, index)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.spec} for {self.cell}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return bind, (self.spec, self.cell)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1,
        factory=RleJitCodec,
        summary="Run-length encoding compiled by numba",
        automatic=Automatic(decode_cost=7),
    )

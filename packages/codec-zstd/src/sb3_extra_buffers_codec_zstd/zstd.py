"""``zstd``: Zstandard through the ``zstandard`` library."""

from __future__ import annotations

import threading

import zstandard

from sb3_extra_buffers.codecs import Automatic, ByteCodec, CellSpec, CodecPlugin, CodecSpec, Levels, hookimpl
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.memory import Bytes, ByteSource, Indices

#: Codecs of smaller cells share a decompressor. A damaged header may make it allocate this much for a moment.
_MIN_WINDOW = 1 << 17


class _Shared(threading.local):
    """Compressors and decompressors of a thread, for all its codecs: their tables take up to a megabyte each."""

    def __init__(self) -> None:
        self._compressors: dict[tuple[int, bool], zstandard.ZstdCompressor] = {}
        self._decompressors: dict[int, zstandard.ZstdDecompressor] = {}

    def compressor(self, level: int, checksum: bool) -> zstandard.ZstdCompressor:
        found = self._compressors.get((level, checksum))
        if found is None:
            found = zstandard.ZstdCompressor(level, write_checksum=checksum, write_content_size=True)
            self._compressors[level, checksum] = found
        return found

    def decompressor(self, window: int) -> zstandard.ZstdDecompressor:
        found = self._decompressors.get(window)
        if found is None:
            found = self._decompressors[window] = zstandard.ZstdDecompressor(max_window_size=window)
        return found


_SHARED = _Shared()


class _Contexts(threading.local):
    """One compressor and one decompressor per thread: building them costs as much as using them once."""

    def __init__(self, level: int, checksum: bool, cell_nbytes: int) -> None:
        self.compress = _SHARED.compressor(level, checksum).compress
        # No frame of ours has a larger window than its cell; a damaged header must not make the library allocate one.
        self.decompressor = _SHARED.decompressor(max(_MIN_WINDOW, 2 * cell_nbytes))


class ZstdCodec(ByteCodec):
    """One Zstandard frame per cell, with its content size.

    Frames carry no checksum unless ``checksum=True`` asks for one: it costs four bytes and a pass over the cell, and
    decoders on a GPU do not accept it.
    """

    min_nbytes_per_thread = 1 << 20
    library_errors = (zstandard.ZstdError,)

    def __init__(self, spec: CodecSpec, cell: CellSpec) -> None:
        self.detects_corruption = bool(spec.params["checksum"])
        super().__init__(spec, cell)
        self._contexts = _Contexts(self.level, self.detects_corruption, cell.nbytes)

    def compress(self, cell: memoryview) -> bytes:
        return self._contexts.compress(cell)

    def decompress_into(self, payload: memoryview, out: memoryview) -> None:
        self._check_content_size(payload)
        decompressor = self._contexts.decompressor
        if self.detects_corruption:
            # Only this call looks at what follows the frame; reading into ``out`` stops when ``out`` is full.
            self.fill(out, decompressor.decompress(payload, allow_extra_data=False), payload)
        elif decompressor.stream_reader(payload).readinto(out) != len(out):
            raise PayloadError(self.spec.name, len(payload), "its frame ends too early")

    def decode_batch(self, source: ByteSource, starts: Indices, lengths: Indices, out: Bytes, /) -> None:
        # Contiguous frames are read in a single call, straight into the rows. That call takes the interpreter lock so
        # rarely that threads really run side by side; joining the payloads first is cheap, they are small. Raw cells
        # have no frame, and what follows a frame is only looked at one by one.
        if self.detects_corruption or not len(starts) or int(lengths.max()) >= self.max_encoded_nbytes:
            return super().decode_batch(source, starts, lengths, out)
        try:
            payloads = [source.view(*place) for place in zip(starts.tolist(), lengths.tolist())]
            for payload in payloads:
                self._check_content_size(payload)
            frames = self._contexts.decompressor.stream_reader(b"".join(payloads), read_across_frames=True)
            filled = frames.readinto(memoryview(out.reshape(-1)))
            # Something left over means that a payload held more than one frame, and that later rows are not their own.
            if filled == out.nbytes and not frames.read(1):
                return None
        except (zstandard.ZstdError, PayloadError):
            pass
        return super().decode_batch(source, starts, lengths, out)  # says which payload is damaged, and how

    def _check_content_size(self, payload: memoryview) -> None:
        nbytes = zstandard.frame_content_size(payload)
        if nbytes != self.cell.nbytes:
            problem = f"its frame claims {nbytes} bytes, the cell has {self.cell.nbytes}"
            raise PayloadError(self.spec.name, len(payload), problem)


@hookimpl
def sb3_extra_buffers_codec() -> CodecPlugin:
    return CodecPlugin(
        protocol=1,
        factory=ZstdCodec,
        summary="Zstandard: small payloads at high speed; the one to start with",
        levels=Levels(default=3, ranges=((-100, -1), (1, 22))),
        parameters={"checksum": False},
        automatic=Automatic(decode_cost=15, levels=(-3, 1, 6), call_cost=120_000),
    )

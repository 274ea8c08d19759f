"""From what is asked for to frames."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np

from sb3_extra_buffers import frames
from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.frames import FrameGeometry, FrameKernels, Streams, stacks, whole
from sb3_extra_buffers.frames.packing import worst_nbytes
from sb3_extra_buffers.heaps import Heap
from sb3_extra_buffers.stores.chunks import ChunkStore
from sb3_extra_buffers.stores.frame_store import FrameStore, slots_for
from sb3_extra_buffers.stores.planes import Frames
from sb3_extra_buffers.stores.preferences import Preference, first_installed
from sb3_extra_buffers.stores.undecided import CellsInstead, UndecidedFrames

logger = logging.getLogger("sb3_extra_buffers")

#: Smaller observations are too small for their frames to be worth a chunk.
MIN_FRAMES_NBYTES = 1024
#: In fewer steps, observations take no more than the frames that every stream keeps as they are.
MIN_FRAMES_ROWS = 4
#: What the chunks that are being filled would take if every frame were noise should not be more than this.
_MAX_FILLING_NBYTES = 1 << 27
_MIN_CHUNK = 4


@dataclass(frozen=True)
class FrameDemand:
    """Observations to be stored as frames.

    :param label: what they are, for messages
    :param shape: of one observation
    :param dtype: of its elements, as they are stored
    :param cells: how many observations a plane has
    :param planes: one, or two for transitions
    :param streams: how many environments take turns
    :param preference: speed or memory
    :param codec: what was asked for; ``None`` leaves the choice to the preference
    :param may_be_cells: whether observations that are no stack may become cells, if that is smaller
    """

    label: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    cells: int
    planes: int
    streams: int
    preference: Preference
    codec: CodecSpec | None
    may_be_cells: bool = False

    @property
    def row_nbytes(self) -> int:
        """Size of one observation."""
        return int(np.prod(self.shape)) * self.dtype.itemsize

    @property
    def geometries(self) -> list[FrameGeometry]:
        """How frames may lie in an observation."""
        return [*stacks(self.shape, self.dtype.itemsize), whole(self.row_nbytes)]

    @property
    def slots(self) -> int:
        """How many cells of a heap this takes, whatever the frames turn out to be."""
        observations = self.planes * self.cells
        return max(slots_for(one, self._chunk(one), self.streams, observations) for one in self.geometries)

    @property
    def worst_nbytes(self) -> int:
        """How many bytes a ring needs so that it never evicts a chunk."""
        observations = self.planes * self.cells + 2 * self.streams
        return max(
            (-(-observations * one.depth // self._chunk(one)) + 4 * self.streams)
            * worst_nbytes(self._chunk(one), one.frame_nbytes)
            for one in self.geometries
        )

    def complete(self) -> FrameDemand:
        """The same with all parameters of the codec. One that is not installed is refused before anything is stored."""
        if any(self.slots * (self._chunk(one) + 2 * one.depth) >= 2**31 for one in self.geometries):
            hint = "Use layout='cells', or several buffers."
            raise ParameterError(self.label, "buffer_size", self.cells, "frames are counted in 31 bits", hint)
        if self.codec is None:
            return self
        return replace(self, codec=bind(self.codec, CellSpec(np.uint8, 256)).spec)

    def build(self, heap: Heap, first: int, threads: int | None, instead: CellsInstead | None = None) -> Frames:
        """Make the store, in a section of a heap that begins with the cell ``first``.

        :param heap: where payloads live
        :param first: the first cell of the section
        :param threads: how many threads decode a batch; ``None`` uses as many as pay
        :param instead: makes cells of what turns out to be no stack; ``None`` makes frames of everything
        """
        # Kernels are loaded, and compiled where need be, with the buffer, not with the first step of a training run.
        construct = _Construct(self, heap, first, threads, frames.create())
        possible = list(stacks(self.shape, self.dtype.itemsize))
        if not possible and instead is None:
            return construct(whole(self.row_nbytes))
        label = f"frames (not yet known how they are stacked; {self._packing})"
        held = self.cells, self.row_nbytes, self.streams
        return UndecidedFrames(possible, construct, *held, label, instead, self.planes)

    def construct(
        self, geometry: FrameGeometry, heap: Heap, first: int, threads: int | None, kernels: FrameKernels
    ) -> FrameStore:
        """Make the store for frames that lie like this."""
        chunk = self._chunk(geometry)
        streams = Streams(geometry, chunk, self.streams, self.cells, self.slots, self.planes)
        codec = self._chunk_codec
        chunks = ChunkStore(
            kernels, codec, self._fallback, heap, first, self.slots, self.streams, geometry.frame_nbytes, threads
        )
        store = FrameStore(streams, chunks, kernels, self.cells, f"{geometry}; {self._packing}; chunks of {chunk}")
        logger.info("%s: %s", self.label, store.codec)
        return store

    def _chunk(self, geometry: FrameGeometry) -> int:
        affordable = _MAX_FILLING_NBYTES // (self.streams * geometry.frame_nbytes)
        return max(2 * geometry.depth, _MIN_CHUNK, min(self.preference.chunk, affordable))

    @property
    def _chunk_codec(self) -> CodecSpec | None:
        """What every chunk goes through."""
        if self.codec is None:
            return self.preference.codec
        return None if self.codec.name == "none" else self.codec

    @property
    def _fallback(self) -> CodecSpec | None:
        """What chunks go through that patches do not make small."""
        may_fall_back = self.codec is None and self.preference.fallback
        return first_installed(self.preference.fallback) if may_fall_back else None

    @property
    def _packing(self) -> str:
        if self._chunk_codec is not None:
            return f"patches, {self._chunk_codec}"
        return "patches" if self._fallback is None else f"patches, {self._fallback} if large"


@dataclass
class _Construct:
    """What undecided frames call when they know how frames lie."""

    demand: FrameDemand
    heap: Heap
    first: int
    threads: int | None
    kernels: FrameKernels

    def __call__(self, geometry: FrameGeometry, /) -> FrameStore:
        return self.demand.construct(geometry, self.heap, self.first, self.threads, self.kernels)

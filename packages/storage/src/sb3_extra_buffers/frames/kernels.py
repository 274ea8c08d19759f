"""Frame kernels: their contract, their registry, and the choice of the fastest that are installed.

Kernels do the work for every observation, in numpy or compiled. Another implementation registers itself by the entry
point group ``sb3_extra_buffers.frame_kernels``. :class:`FrameKernels` lists everything that is required;
:class:`ContiguousKernels`, :class:`OverlappingKernels` and :class:`CachingKernels` are optional capabilities.
``sb3_extra_buffers.testing.KernelConformance`` checks all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import PluginError
from sb3_extra_buffers.frames.streams import Streams
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.registry import PluginKind, Registry
from sb3_extra_buffers.registry.homes import FRAME_KERNEL_HOMES

logger = logging.getLogger("sb3_extra_buffers")

#: The version of this contract.
KERNELS_PROTOCOL = 1


@dataclass(frozen=True)
class Chunks:
    """Complete chunks as arrays: their bytes, and the reference frames that their first patches are made on."""

    packed: Sequence[Bytes]
    bases: Sequence[Bytes]


@dataclass(frozen=True)
class Places:
    """Addresses of complete chunks, valid while this object lives and nothing is written.

    :param addresses: of the bytes of each chunk
    :param lengths: of the bytes of each chunk
    :param bases: addresses of the reference frame of each chunk
    :param memory: an object that keeps the memory from being freed
    """

    addresses: NDArray[np.uint64]
    lengths: Indices
    bases: NDArray[np.uint64]
    memory: object = None


class Known(NamedTuple):
    """Addresses of all chunks that were looked up before, by slot, valid until the next call of the source.

    :param addresses: of the bytes of each chunk; 0 if unknown
    :param lengths: of the bytes of each chunk
    :param base_of: for each slot, the index of its reference frame in ``bases``
    :param bases: addresses of all reference frames
    """

    addresses: NDArray[np.uint64]
    lengths: Indices
    base_of: NDArray[np.int32]
    bases: NDArray[np.uint64]


class ChunkSource(Protocol):
    """Complete chunks by slot, as kernels read them. Chunks may move between two batches, so ask for every batch.

    A chunk may have more bytes at its end than its frames take. Its bytes can be damaged.
    """

    def known(self) -> Known | None:
        """Addresses that kernels can look up without a call per chunk; ``None`` if there are none."""

    def load(self, slots: Sequence[int], /) -> Chunks:
        """The chunks in these slots."""

    def place(self, slots: Indices, /) -> Places:
        """The addresses of the chunks in these slots."""


class FrameKernels(Protocol):
    """Splits observations into frames, and joins frames to observations.

    Every implementation writes the same bytes and leaves the same numbers in :class:`Streams` as the reference,
    ``"numpy"``, so one can go on where another stopped. This includes streams whose ``workspace`` another one has set:
    kernels replace a workspace that is not their own.

    Kernels are pickled and copied with the buffer that uses them; what is unpickled works, and may be the kernels that
    are installed there. Several threads may read at once. Nothing is written meanwhile.
    """

    @property
    def name(self) -> str:
        """The name that this implementation is registered under."""

    def write(
        self, streams: Streams, references: Indices, rows: Bytes, begin: int, next_rows: Bytes | None = None, /
    ) -> int:
        """Store observations, from index ``begin`` on, until one has a new frame but its stream's chunk is complete.

        An observation without a new frame is stored even then: a stream that stands still refers to its open chunk,
        which no heap can evict. The caller stores the complete chunk, begins the next one, and goes on.

        If an exception is raised meanwhile, each observation is stored completely or not at all. (See
        :func:`~sb3_extra_buffers.frames.apply_changes`; compiled code is not interrupted.)

        :param streams: the streams to change
        :param references: the numbers of the observations, C-contiguous
        :param rows: their bytes, C-contiguous
        :param next_rows: the bytes of the next observations of the same cells, with indices from ``len(rows)`` on
        :return: the index of the first observation that was not stored
        """

    def measure(self, old: Bytes, new: Bytes, /) -> int:
        """Bytes of the patch from one frame to another, without the count of its steps."""

    def read(
        self, streams: Streams, source: ChunkSource, references: Indices, out: Bytes, next_out: Bytes | None = None, /
    ) -> None:
        """Read observations. An observation that was never written is read as zeros.

        :param streams: the streams
        :param source: the complete chunks
        :param references: the numbers of the observations, C-contiguous
        :param out: a row for each of them, C-contiguous
        :param next_out: rows for the next observations of the same cells
        :raise PayloadError: if a patch reaches beyond its frame or its chunk; no byte outside of the rows is written
        """


@runtime_checkable
class ContiguousKernels(Protocol):
    """Optional capability: rearranges images faster than numpy."""

    def contiguous(self, array: NDArray[Any], /) -> NDArray[Any]:
        """The same as ``numpy.ascontiguousarray``: equal values, C-contiguous.

        If the result is not the array itself, its memory is not shared with any other array, nor used by a later call:
        an observation and the next one are held at the same time.

        :param array: of any dtype, with one axis or more; often images of the shape ``(environments, channels, height,
            width)`` that are a view of ``(environments, height, width, channels)``
        """


@runtime_checkable
class OverlappingKernels(Protocol):
    """Optional capability: reads an observation and the next one into one row, where they have all but a frame in
    common.
    """

    def read_overlapping(self, streams: Streams, source: ChunkSource, references: Indices, out: Bytes, /) -> bool:
        """Read stacks and their next observations: the frames of the observation, then the newest one of the next.

        This is possible if each next observation is its observation shifted by one frame. Positions decide, not
        content: frame ``i`` of the next observation is frame ``i + 1`` of the observation if both are the same frame of
        the stream, or frames of zeros.

        :param streams: the streams, of frames that are contiguous in an observation
        :param source: the complete chunks
        :param references: the numbers of the observations, C-contiguous
        :param out: a row of ``depth + 1`` frames for each of them, C-contiguous
        :return: whether all pairs were such; if not, nothing was read
        :raise PayloadError: as for ``read``
        """


@runtime_checkable
class CachingKernels(Protocol):
    """Optional capability: keeps memory from one batch to the next, and reports how much."""

    @property
    def nbytes_for_batches(self) -> int:
        """Bytes that are kept for the next batches; 0 before the first one. Reports of memory add it."""


@dataclass(frozen=True)
class KernelsPlugin:
    """An implementation as its distribution describes it.

    :param protocol: the version of the contract that it was written for, as a literal number (today: 1)
    :param factory: makes the kernels
    :param summary: one line for listings
    """

    protocol: int
    factory: Callable[[], FrameKernels]
    summary: str


registry: Registry[KernelsPlugin] = Registry(
    PluginKind(
        label="frame kernels",
        group="sb3_extra_buffers.frame_kernels",
        hook="sb3_extra_buffers_frame_kernels",
        plugin_type=KernelsPlugin,
        protocol=KERNELS_PROTOCOL,
        homes=FRAME_KERNEL_HOMES,
        distribution="sb3-extra-buffers-storage",
    )
)


def create(name: str | None = None) -> FrameKernels:
    """Make frame kernels. The choice changes the speed and nothing else.

    :param name: ``"numpy"`` or the name of an installed plugin; ``None`` takes the first plugin that works, and
        ``"numpy"`` if there is none
    """
    from sb3_extra_buffers.frames.numpy_kernels import REFERENCE  # here, because it imports this module

    if name is not None:
        return registry.load(name).factory()
    for offered in registry.names():
        if offered != REFERENCE:
            try:
                return registry.load(offered).factory()
            except PluginError as error:
                text = "Frame kernels %r are installed but do not work; slower ones are used. %s"
                logger.warning(text, offered, error)
    return registry.load(REFERENCE).factory()


def contiguous_by(kernels: FrameKernels | None) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """``numpy.ascontiguousarray``, or the same by kernels that have the capability :class:`ContiguousKernels`.

    ``VecTransposeImage`` of Stable-Baselines3 returns views, and copies of them keep the order of their memory. For a
    stack of four frames, rearranging takes numpy eight times as long as a plain copy.
    """
    return kernels.contiguous if isinstance(kernels, ContiguousKernels) else np.ascontiguousarray

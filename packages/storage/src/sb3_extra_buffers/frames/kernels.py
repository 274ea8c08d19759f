"""The contract of the hot paths: what is done for every observation, in numpy or compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames.streams import Streams
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.registry import hookspec

#: The version of this contract.
KERNELS_PROTOCOL = 1


@dataclass(frozen=True)
class Chunks:
    """Packed chunks in memory, and the frame that the first patch of each is made on.

    :param packed: the bytes of each
    :param bases: a frame for each
    """

    packed: Sequence[Bytes]
    bases: Sequence[Bytes]


@dataclass(frozen=True)
class Places:
    """Where packed chunks and their bases are in memory, valid while this object lives and nothing is written.

    :param addresses: of the packed bytes
    :param lengths: of the packed bytes
    :param bases: addresses of the bases
    :param memory: what must not be freed meanwhile
    """

    addresses: NDArray[np.uint64]
    lengths: Indices
    bases: NDArray[np.uint64]
    memory: object = None


class Known(NamedTuple):
    """Where chunks are in memory that were found before, for all slots, so that a batch needs no search for them.

    :param addresses: of the packed bytes; 0 if it is not known
    :param lengths: of the packed bytes
    :param base_of: which base the chunk in each slot has
    :param bases: addresses of all bases
    """

    addresses: NDArray[np.uint64]
    lengths: Indices
    base_of: NDArray[np.int32]
    bases: NDArray[np.uint64]


class ChunkSource(Protocol):
    """Where complete chunks are."""

    def known(self) -> Known | None:
        """What compiled kernels can look up by themselves; ``None`` if nothing is remembered."""

    def load(self, slots: Sequence[int], /) -> Chunks:
        """The chunks in these slots."""

    def place(self, slots: Indices, /) -> Places:
        """Where the chunks in these slots are, for compiled kernels that do not know it."""


class FrameKernels(Protocol):
    """Three functions that know the bytes of chunks and the numbers of :class:`Streams`.

    Every implementation makes the same bytes and leaves the same numbers.
    """

    @property
    def name(self) -> str:
        """What this implementation is called."""

    def write(
        self, streams: Streams, references: Indices, rows: Bytes, begin: int, following: Bytes | None = None, /
    ) -> int:
        """Take observations apart, from number ``begin`` on, until one has a new frame for a chunk that is complete.

        One without a new frame is taken, so that a stream that stands still refers to the chunk that is being filled,
        which no heap can drop.

        :param streams: what is changed
        :param references: which observations these are, C-contiguous
        :param rows: their bytes, C-contiguous
        :param following: more rows, for the same places of the following plane; they count on from the others
        :return: the number of the first that was not written
        """

    def measure(self, old: Bytes, new: Bytes, /) -> int:
        """How many bytes the patch from one frame to another takes, besides its count."""

    def read(
        self, streams: Streams, source: ChunkSource, references: Indices, out: Bytes, following: Bytes | None = None, /
    ) -> None:
        """Put observations together.

        :param streams: what they are made of
        :param source: where chunks are that are complete
        :param references: which observations, C-contiguous
        :param out: a row for each of them, C-contiguous
        :param following: rows for what is at the same places of the following plane
        """


class ContiguousKernels(FrameKernels, Protocol):
    """Kernels that also turn images faster than numpy. Optional: the core asks numpy otherwise."""

    def contiguous(self, array: NDArray[Any], /) -> NDArray[Any]:
        """What ``numpy.ascontiguousarray`` makes of an array: the same values, C-contiguous.

        If it is another array than the one that was given, then in memory that nobody else has, also not the next call:
        an observation and the next one are kept side by side.

        :param array: of any dtype, with one axis or more; for observations of images of the shape
            ``(environments, channels, height, width)``, often a view of ``(environments, height, width, channels)``
        """


@dataclass(frozen=True)
class KernelsPlugin:
    """An implementation as its distribution describes it.

    :param protocol: the contract that it was written against, as a literal number (today: 1)
    :param factory: makes it
    :param summary: one line for listings
    """

    protocol: int
    factory: Callable[[], FrameKernels]
    summary: str


class KernelsHooks:
    """The hook of a plugin with frame kernels."""

    @hookspec(historic=True)
    def sb3_extra_buffers_frame_kernels(self) -> KernelsPlugin:  # type: ignore[empty-body]
        """Return the implementation that this module offers."""

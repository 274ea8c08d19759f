"""Frame kernels as the kit sees them: with streams to work on, a shelf for chunks, and observations of every kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from sb3_extra_buffers import frames
from sb3_extra_buffers.frames import Chunks, FrameGeometry, FrameKernels, Places, Streams
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.testing.rule import RuleBook


@dataclass(frozen=True)
class KernelSubject:
    """Installed frame kernels."""

    name: str

    def create(self) -> FrameKernels:
        """Make them."""
        return frames.create(self.name)

    def __str__(self) -> str:
        return f"frame kernels {self.name!r}"


KERNEL_RULES: RuleBook[KernelSubject] = RuleBook()

#: Stacked first and last, gray and of several channels, one frame and many, frames of one byte and of hundreds.
GEOMETRIES = (
    FrameGeometry(4, 1, 300),
    FrameGeometry(4, 75, 1),
    FrameGeometry(2, 50, 3),
    FrameGeometry(1, 1, 64),
    FrameGeometry(3, 1, 1),
    FrameGeometry(6, 9, 2),
)
#: Ways within a frame that take several steps, and counts of four bytes.
LARGE = FrameGeometry(2, 1, 200_000)


@dataclass
class Shelf:
    """Chunks by slot, all made on a frame of zeros."""

    frame_nbytes: int
    packed: dict[int, Bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.base = np.zeros(self.frame_nbytes, np.uint8)

    def known(self) -> None:
        return None

    def load(self, slots: Sequence[int], /) -> Chunks:
        return Chunks([self.packed[slot] for slot in slots], [self.base] * len(slots))

    def place(self, slots: Indices, /) -> Places:
        packed = [self.packed[slot] for slot in slots.tolist()]
        addresses = np.array([chunk.ctypes.data for chunk in packed], np.uint64)
        lengths = np.array([len(chunk) for chunk in packed], np.int64)
        return Places(addresses, lengths, np.full(len(packed), self.base.ctypes.data, np.uint64))


class Workbench:
    """Kernels with all that they work on.

    :param kernels: the kernels
    :param geometry: how frames lie in an observation
    :param cells: observations per plane
    :param streams: how many environments there are
    :param chunk: frames in a chunk
    """

    def __init__(
        self, kernels: FrameKernels, geometry: FrameGeometry, cells: int, streams: int, chunk: int = 16
    ) -> None:
        self.kernels = kernels
        # Twice what observations without a common frame would need, since these are written in any order.
        slots = 4 * cells * geometry.depth // chunk + 4 * streams + 8
        self.streams = Streams(geometry, max(chunk, 2 * geometry.depth), streams, cells, slots, planes=2)
        self.shelf = Shelf(geometry.frame_nbytes)

    def write(self, cells: Indices, rows: Bytes, following: Bytes | None = None) -> None:
        """Write observations, and what follows them to the second plane."""
        done, count = 0, len(rows) if following is None else 2 * len(rows)
        while (done := self.kernels.write(self.streams, cells, rows, done, following)) < count:
            plane, index = divmod(done, len(rows))
            stream = (int(cells[index]) + plane * self.streams.cells) % self.streams.streams
            slot, filling = int(self.streams.open[stream]), self.streams.filling
            self.shelf.packed[slot] = filling.packed(stream, int(self.streams.sizes[slot]))
            filling.begin(stream, self.shelf.base)
            self.streams.advance(stream)

    def read(self, references: Indices) -> Bytes:
        """Read observations."""
        out = self._room(references)
        self.kernels.read(self.streams, self.shelf, references, out)
        return out

    def read_both(self, cells: Indices) -> tuple[Bytes, Bytes]:
        """Read the same cells of both planes."""
        out, following = self._room(cells), self._room(cells)
        self.kernels.read(self.streams, self.shelf, cells, out, following)
        return out, following

    def _room(self, references: Indices) -> Bytes:
        return np.full((len(references), self.streams.geometry.row_nbytes), 7, np.uint8)


def play(rng: np.random.Generator, geometry: FrameGeometry, streams: int, steps: int) -> Iterator[Bytes]:
    """Observations for each stream: mostly stacks that shift, and everything else that may happen to a stack."""
    depth, nbytes = geometry.depth, geometry.frame_nbytes
    scene = rng.integers(0, 4, (streams, nbytes)).astype(np.uint8)
    stack = np.zeros((streams, depth, nbytes), np.uint8)
    for _ in range(steps):
        for stream in range(streams):
            scene[stream, rng.integers(0, nbytes, 3)] = rng.integers(0, 256, 3)
            own, event = stack[stream], rng.random()
            if event < 0.05:  # a reset, filled with zeros
                own[:] = 0
                own[-1] = scene[stream]
            elif event < 0.1:  # a reset, filled with the first frame
                own[:] = scene[stream]
            elif event < 0.13:  # no stack at all
                own[:] = rng.integers(0, 256, (depth, nbytes))
            elif event < 0.15:
                own[:] = 0
            elif event < 0.18:  # backwards
                own[:] = own[::-1].copy()
            elif event > 0.23:  # else nothing changes
                own[:-1] = own[1:].copy()
                own[-1] = scene[stream]
        rows = np.empty((streams, geometry.row_nbytes), np.uint8)
        geometry.join(stack, rows)
        yield rows

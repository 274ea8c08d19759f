"""A workbench for frame kernels: streams, a source of chunks and generated observations, for the kit and for tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.frames.geometry import FrameGeometry
from sb3_extra_buffers.frames.kernels import Chunks, FrameKernels, Known, Places
from sb3_extra_buffers.frames.streams import Streams
from sb3_extra_buffers.memory import Bytes, Indices


class Shelf:
    """A source of complete chunks, by slot."""

    def __init__(self, slots: int, frame_nbytes: int) -> None:
        self.slots = slots
        self.packed: dict[int, Bytes] = {}
        #: Reference frames by slot; a frame of zeros for all others.
        self.bases: dict[int, Bytes] = {}
        self.zeros = np.zeros(frame_nbytes, np.uint8)
        #: Whether every other chunk has a known address.
        self.knows = False

    def known(self) -> Known | None:
        if not self.knows:
            return None
        addresses, lengths = np.zeros(self.slots, np.uint64), np.zeros(self.slots, np.int64)
        for slot, packed in list(self.packed.items())[::2]:
            addresses[slot], lengths[slot] = packed.ctypes.data, len(packed)
        every = range(self.slots)
        return Known(addresses, lengths, np.array(every, np.int32), self._addresses_of_bases(every))

    def load(self, slots: Sequence[int], /) -> Chunks:
        return Chunks([self.packed[slot] for slot in slots], [self.bases.get(slot, self.zeros) for slot in slots])

    def place(self, slots: Indices, /) -> Places:
        packed = [self.packed[slot] for slot in slots.tolist()]
        addresses = np.array([chunk.ctypes.data for chunk in packed], np.uint64)
        lengths = np.array([len(chunk) for chunk in packed], np.int64)
        return Places(addresses, lengths, self._addresses_of_bases(slots.tolist()))

    def move(self) -> list[Bytes]:
        """Move all chunks; returns their old memory, which is overwritten."""
        old = list(self.packed.values())
        self.packed = {slot: packed.copy() for slot, packed in self.packed.items()}
        for packed in old:
            packed.fill(0xFF)
        return old

    def _addresses_of_bases(self, slots: Sequence[int]) -> NDArray[np.uint64]:
        return np.array([self.bases.get(slot, self.zeros).ctypes.data for slot in slots], np.uint64)


class Workbench:
    """Kernels with everything that they work on: observations and next observations of several environments."""

    def __init__(
        self, kernels: FrameKernels, geometry: FrameGeometry, cells: int, streams: int, chunk: int = 16
    ) -> None:
        self.kernels = kernels
        # Twice the chunks of observations without a common frame, because cells are written in any order.
        slots = 4 * cells * geometry.depth // chunk + 4 * streams + 8
        self.streams = Streams(geometry, max(chunk, 2 * geometry.depth), streams, cells, slots, planes=2)
        self.shelf = Shelf(slots, geometry.frame_nbytes)

    def write(self, cells: Indices, rows: Bytes, next_rows: Bytes | None = None) -> None:
        done, count = 0, len(rows) if next_rows is None else 2 * len(rows)
        while (done := self.kernels.write(self.streams, cells, rows, done, next_rows)) < count:
            plane, index = divmod(done, len(rows))
            self._complete((int(cells[index]) + plane * self.streams.cells) % self.streams.streams)

    def _complete(self, stream: int) -> None:
        """Put a complete chunk on the shelf. The reference frame of every other chunk is the newest frame."""
        streams, shelf = self.streams, self.shelf
        slot, following = streams.open.item(stream), streams.next_slot
        shelf.packed[slot] = streams.filling.packed(stream, streams.sizes.item(slot))
        base = streams.filling.tail[stream].copy() if following % 2 else shelf.zeros
        streams.begin_chunk(stream, base, [(shelf.bases, following, base)])

    def read(self, references: Indices) -> Bytes:
        out = self._room(references)
        self.kernels.read(self.streams, self.shelf, references, out)
        return out

    def read_both(self, cells: Indices) -> tuple[Bytes, Bytes]:
        out, next_out = self._room(cells), self._room(cells)
        self.kernels.read(self.streams, self.shelf, cells, out, next_out)
        return out, next_out

    def _room(self, references: Indices) -> Bytes:
        return np.full((len(references), self.streams.geometry.row_nbytes), 7, np.uint8)


def play(rng: np.random.Generator, geometry: FrameGeometry, streams: int, steps: int) -> Iterator[Bytes]:
    """Observations of each stream: mostly stacks that shift, and everything else that can happen to a stack."""
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
            elif event < 0.13:  # not a stack
                own[:] = rng.integers(0, 256, (depth, nbytes))
            elif event < 0.15:
                own[:] = 0
            elif event < 0.18:  # backwards
                own[:] = own[::-1].copy()
            elif event > 0.23:  # otherwise nothing changes
                own[:-1] = own[1:].copy()
                own[-1] = scene[stream]
        rows = np.empty((streams, geometry.row_nbytes), np.uint8)
        geometry.join(stack, rows)
        yield rows

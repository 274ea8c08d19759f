"""Rules about what kernels write and read, beside the reference."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sb3_extra_buffers import frames
from sb3_extra_buffers.frames import FrameGeometry
from sb3_extra_buffers.frames.testing.subject import GEOMETRIES, KERNEL_RULES, LARGE, KernelSubject, Workbench, play
from sb3_extra_buffers.testing.rule import expect

_NUMBERS = (
    "newest",
    "pattern",
    "backs",
    "reach",
    "last",
    "last_row",
    "last_number",
    "last_position",
    "total",
    "repeated",
    "open",
    "previous",
    "sizes",
    "users",
    "free",
    "numbers",
)


@KERNEL_RULES.rule("read-back", "What was written is read, bit by bit: in one plane, in two together, in any order.")
def read_back(subject: KernelSubject) -> None:
    for number, geometry in enumerate(GEOMETRIES):
        rng = np.random.default_rng(number)
        for streams in (1, 3):
            _compare_with_truth(rng, Workbench(subject.create(), geometry, 7 * streams, streams), streams, 150)
    _compare_with_truth(np.random.default_rng(0), Workbench(subject.create(), LARGE, 7, 1), 1, 25)


def _compare_with_truth(rng: np.random.Generator, bench: Workbench, streams: int, steps: int) -> None:
    geometry, cells, row, before = bench.streams.geometry, bench.streams.cells, 0, None
    truth = np.zeros((2 * cells, geometry.row_nbytes), np.uint8)
    for rows in play(rng, geometry, streams, steps):
        if before is not None:
            row = int(rng.integers(0, cells // streams)) if rng.random() < 0.1 else (row + 1) % (cells // streams)
            here = np.arange(streams) + row * streams
            bench.write(here, before, rows)
            truth[here], truth[here + cells] = before, rows
            some = rng.integers(0, cells, 5)
            found, following = bench.read_both(some)
            alone = bench.read(some + cells)
            expect((found == truth[some]).all(), f"{geometry}: observations differ after {row}")
            expect((following == truth[some + cells]).all(), f"{geometry}: what follows differs after {row}")
            expect((alone == following).all(), f"{geometry}: a plane alone differs from both together")
        before = rows


@KERNEL_RULES.rule(
    "same-numbers", "Numbers and chunks are those of the reference: one can go on where another stopped."
)
def same_numbers(subject: KernelSubject) -> None:
    for number, geometry in enumerate(GEOMETRIES):
        rng = np.random.default_rng(100 + number)
        ours, reference = (
            Workbench(kernels, geometry, 8, 2, chunk=8) for kernels in (subject.create(), frames.create("numpy"))
        )
        before = None
        for step, rows in enumerate(play(rng, geometry, 2, 200)):
            if before is not None:
                here = np.arange(2) + 2 * (int(rng.integers(0, 4)) if rng.random() < 0.1 else step % 4)
                for bench in (ours, reference):
                    bench.write(here, before, rows)
                for name in _NUMBERS:
                    same = (getattr(ours.streams, name) == getattr(reference.streams, name)).all()
                    expect(same, f"{geometry}: {name} differs after {step} steps")
            before = rows
        expect(ours.shelf.packed.keys() == reference.shelf.packed.keys(), f"{geometry}: chunks are in other slots")
        for slot, packed in ours.shelf.packed.items():
            expect(bytes(packed) == bytes(reference.shelf.packed[slot]), f"{geometry}: the chunk in {slot} differs")


@KERNEL_RULES.rule(
    "same-bytes", "Frames are packed into the bytes of the reference, whatever changes from one to another."
)
def same_bytes(subject: KernelSubject) -> None:
    kernels, reference, rng = subject.create(), frames.create("numpy"), np.random.default_rng(0)
    for nbytes in (1, 2, 7, 8, 9, 255, 256, 600, 7056, LARGE.frame_nbytes):
        for share in (0, 1e-5, 0.001, 0.05, 0.3, 1):
            content = np.zeros((9, nbytes), np.uint8)
            base = rng.integers(0, 256, nbytes).astype(np.uint8)
            for index in range(1, 9):
                changed = rng.random(nbytes) < share
                content[index] = np.where(changed, rng.integers(0, 256, nbytes), content[index - 1])
                content[index, : int(rng.integers(0, nbytes + 1)) if index % 3 == 0 else 0] = index
            geometry, what = FrameGeometry(1, 1, nbytes), f"{nbytes} bytes of which {share} change"
            ours, theirs = (Workbench(part, geometry, 9, 1) for part in (kernels, reference))
            for bench in (ours, theirs):
                bench.streams.filling.begin(0, base)
                bench.write(np.arange(9), content)
            sizes = [int(bench.streams.sizes[bench.streams.open[0]]) for bench in (ours, theirs)]
            packed = [bench.streams.filling.packed(0, size) for bench, size in zip((ours, theirs), sizes)]
            expect(bytes(packed[0]) == bytes(packed[1]), f"{what}: other bytes")
            measured = [part.measure(base, content[1]) for part in (kernels, reference)]
            expect(measured[0] == measured[1], f"{what}: a patch takes {measured[1]} bytes, not {measured[0]}")


@KERNEL_RULES.rule("inside", "Reading writes all of the rows that were asked for and nothing beside them.")
def inside(subject: KernelSubject) -> None:
    for geometry in GEOMETRIES:
        bench = Workbench(subject.create(), geometry, 6, 1)
        rows = list(play(np.random.default_rng(1), geometry, 1, 60))
        for step, (before, after) in enumerate(pairwise(rows)):
            bench.write(np.array([step % 6]), before, after)
        room = np.full((6, geometry.row_nbytes), 0xAB, np.uint8)
        bench.kernels.read(bench.streams, bench.shelf, np.array([3, 0, 3, 5]), room[1:5])
        expect((room[[0, 5]] == 0xAB).all(), f"{geometry}: bytes beside the rows were changed")
        expect((room[1] == room[3]).all(), f"{geometry}: the same observation differs from itself")

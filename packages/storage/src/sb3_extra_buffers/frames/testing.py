"""The conformance kit for frame kernels: the rules of :mod:`sb3_extra_buffers.frames.kernels`, each with a check."""

from __future__ import annotations

import copy
import gc
import pickle
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, pairwise
from types import FrameType
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from sb3_extra_buffers import frames
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.frames import (
    REFERENCE,
    CachingKernels,
    ContiguousKernels,
    FrameGeometry,
    FrameKernels,
    OverlappingKernels,
)
from sb3_extra_buffers.frames.workbench import Workbench, play
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.testing.conformance import Conformance
from sb3_extra_buffers.testing.interrupts import can_raise, traced
from sb3_extra_buffers.testing.rule import NotApplicable, Rule, RuleBook, expect

__all__ = ["KERNEL_RULES", "KernelConformance", "KernelSubject"]

#: Stacked first and last, gray and of several channels, one frame and many, frames of one byte and of hundreds.
GEOMETRIES = (
    FrameGeometry(4, 1, 300),
    FrameGeometry(4, 75, 1),
    FrameGeometry(2, 50, 3),
    FrameGeometry(1, 1, 64),
    FrameGeometry(3, 1, 1),
    FrameGeometry(6, 9, 2),
)
#: Skips within a frame that take several steps, and counts of four bytes.
LARGE = FrameGeometry(2, 1, 200_000)
#: From one pixel to more than any register holds, by one channel to more than any stack of gray frames.
_IMAGES = ((1, 1), (3, 5), (4, 8), (6, 11), (12, 12), (33, 31))
_CHANNELS = (1, 2, 3, 4, 5, 12)
#: Difference between reported and measured memory: small objects that come and go.
_SLACK = 1 << 17


@dataclass(frozen=True)
class KernelSubject:
    """Installed frame kernels."""

    name: str

    def create(self) -> FrameKernels:
        return frames.create(self.name)

    def __str__(self) -> str:
        return f"frame kernels {self.name!r}"


KERNEL_RULES: RuleBook[KernelSubject] = RuleBook()


class KernelConformance(Conformance):
    """Holds installed frame kernels to every rule of the contract.

    .. code-block:: python

        class TestMine(KernelConformance):
            kernels = "mine"
    """

    kernels: ClassVar[str]

    @pytest.mark.parametrize("rule", KERNEL_RULES, ids=lambda rule: rule.id)
    def test_rule(self, rule: Rule[KernelSubject]) -> None:
        self._verify(rule, KernelSubject(self.kernels))


def _check_playing(seed: int, bench: Workbench, steps: int, between: Callable[[int], object] | None = None) -> None:
    """Write what environments bring, and compare what is read with it. ``between`` is called before each step."""
    rng, geometry = np.random.default_rng(seed), bench.streams.geometry
    cells, streams = bench.streams.cells, bench.streams.streams
    truth, row = np.zeros((2 * cells, geometry.row_nbytes), np.uint8), 0
    for step, (before, after) in enumerate(pairwise(play(rng, geometry, streams, steps))):
        if between is not None:
            between(step)
        row = int(rng.integers(0, cells // streams)) if rng.random() < 0.1 else (row + 1) % (cells // streams)
        here, some = np.arange(streams) + row * streams, rng.integers(0, cells, 5)
        bench.write(here, before, after)
        truth[here], truth[here + cells] = before, after
        found, next_found = bench.read_both(some)
        expect((found == truth[some]).all(), f"{geometry}: observations differ after {step} steps")
        expect((next_found == truth[some + cells]).all(), f"{geometry}: next observations differ after {step} steps")
        alone = bench.read(some + cells)
        expect((alone == next_found).all(), f"{geometry}: next observations alone differ from both together")


def _played(kernels: FrameKernels, geometry: FrameGeometry, cells: int, steps: int) -> Workbench:
    """A workbench of one environment with something stored."""
    bench = Workbench(kernels, geometry, cells, 1)
    for step, (before, after) in enumerate(pairwise(play(np.random.default_rng(1), geometry, 1, steps))):
        bench.write(np.array([step % cells]), before, after)
    return bench


@KERNEL_RULES.rule("name", "The name is the one that the kernels are registered under.")
def name(subject: KernelSubject) -> None:
    found = subject.create().name
    expect(found == subject.name, f"the name is {found!r}")


@KERNEL_RULES.rule("read-back", "What was written is read, bit by bit: alone, with next observations, in any order.")
def read_back(subject: KernelSubject) -> None:
    for number, geometry in enumerate(GEOMETRIES):
        for streams in (1, 3):
            _check_playing(number, Workbench(subject.create(), geometry, 7 * streams, streams), 150)
    _check_playing(0, Workbench(subject.create(), LARGE, 7, 1), 25)


@KERNEL_RULES.rule(
    "same-numbers", "Numbers and chunks are those of the reference: one can go on where another stopped."
)
def same_numbers(subject: KernelSubject) -> None:
    for number, geometry in enumerate(GEOMETRIES):
        rng = np.random.default_rng(100 + number)
        ours, reference = (
            Workbench(kernels, geometry, 8, 2, chunk=8) for kernels in (subject.create(), frames.create(REFERENCE))
        )
        names = [name for name, part in vars(ours.streams).items() if isinstance(part, np.ndarray)]
        for step, (before, after) in enumerate(pairwise(play(rng, geometry, 2, 200))):
            here = np.arange(2) + 2 * (int(rng.integers(0, 4)) if rng.random() < 0.1 else step % 4)
            for bench in (ours, reference):
                bench.write(here, before, after)
            for name in names:
                same = (getattr(ours.streams, name) == getattr(reference.streams, name)).all()
                expect(same, f"{geometry}: {name} differs after {step} steps")
        expect(ours.shelf.packed.keys() == reference.shelf.packed.keys(), f"{geometry}: chunks are in other slots")
        for slot, packed in ours.shelf.packed.items():
            expect(bytes(packed) == bytes(reference.shelf.packed[slot]), f"{geometry}: the chunk in {slot} differs")


@KERNEL_RULES.rule(
    "same-bytes", "Frames are packed into the bytes of the reference, whatever changes from one to another."
)
def same_bytes(subject: KernelSubject) -> None:
    kernels, reference, rng = subject.create(), frames.create(REFERENCE), np.random.default_rng(0)
    for nbytes in (1, 2, 7, 8, 9, 255, 256, 600, 7056, LARGE.frame_nbytes):
        for share in (0, 1e-5, 0.001, 0.05, 0.3, 1):
            content = np.zeros((9, nbytes), np.uint8)
            base = rng.integers(0, 256, nbytes).astype(np.uint8)
            for index in range(1, 9):
                changed = rng.random(nbytes) < share
                content[index] = np.where(changed, rng.integers(0, 256, nbytes), content[index - 1])
                content[index, : int(rng.integers(0, nbytes + 1)) if index % 3 == 0 else 0] = index
            what = f"{nbytes} bytes of which {share} change"
            packed = []
            for part in (kernels, reference):
                bench = Workbench(part, FrameGeometry(1, 1, nbytes), 9, 1)
                bench.streams.filling.begin(0, base)
                bench.write(np.arange(9), content)
                packed.append(bench.streams.filling.packed(0, bench.streams.sizes.item(bench.streams.open.item(0))))
            expect(bytes(packed[0]) == bytes(packed[1]), f"{what}: other bytes")
            measured = [part.measure(base, content[1]) for part in (kernels, reference)]
            expect(measured[0] == measured[1], f"{what}: a patch takes {measured[1]} bytes, not {measured[0]}")


@KERNEL_RULES.rule("inside", "Reading writes all of the rows that were asked for and nothing beside them.")
def inside(subject: KernelSubject) -> None:
    for geometry in GEOMETRIES:
        bench = _played(subject.create(), geometry, 6, 60)
        room = np.full((6, geometry.row_nbytes), 0xAB, np.uint8)
        bench.kernels.read(bench.streams, bench.shelf, np.array([3, 0, 3, 5]), room[1:5])
        expect((room[[0, 5]] == 0xAB).all(), f"{geometry}: bytes beside the rows were changed")
        expect((room[1] == room[3]).all(), f"{geometry}: the same observation differs from itself")


@KERNEL_RULES.rule("sources", "Addresses are asked for anew with every batch: chunks move, and some may be unknown.")
def sources(subject: KernelSubject) -> None:
    for number, geometry in enumerate(GEOMETRIES):
        bench = Workbench(subject.create(), geometry, 14, 2)
        old: list[object] = []

        def change(step: int, bench: Workbench = bench, old: list[object] = old) -> None:
            bench.shelf.knows = step % 5 != 0
            if step % 7 == 0:
                old.append(bench.shelf.move())  # kept: reading it must be wrong, not fatal

        _check_playing(number, bench, 60, change)


@KERNEL_RULES.rule("workspace", "Kernels go on with streams of others, whatever these have left as the workspace.")
def workspace(subject: KernelSubject) -> None:
    for number, geometry in enumerate(GEOMETRIES):
        bench = Workbench(subject.create(), geometry, 14, 2)
        turns = cycle((bench.kernels, frames.create(REFERENCE)))

        def change(step: int, bench: Workbench = bench, turns: Iterator[FrameKernels] = turns) -> None:
            bench.kernels = next(turns)
            if step % 8 < 2:
                bench.streams.workspace = object() if step % 16 < 8 else None

        _check_playing(number, bench, 60, change)


@KERNEL_RULES.rule(
    "interrupts", "After an exception inside write, each observation is stored completely or not at all."
)
def interrupts(subject: KernelSubject) -> None:
    for number, geometry in enumerate(GEOMETRIES[:2]):
        _check_playing(number, _Interrupted(subject.create(), geometry, 14, 2, chunk=8), 300)


class _Interrupted(Workbench):
    """A workbench whose kernels are interrupted at one line after another. Then the same step is written again."""

    lines = 0

    def write(self, cells: Indices, rows: Bytes, next_rows: Bytes | None = None) -> None:
        self.lines += 1
        if not _is_interrupted(lambda: self.kernels.write(self.streams, cells, rows, 0, next_rows), self.lines):
            self.lines = 0
        super().write(cells, rows, next_rows)


def _is_interrupted(call: Callable[[], object], lines: int) -> bool:
    """Call a function, and raise after some lines of Python code in it. Returns whether it was still running."""
    kind = (KeyboardInterrupt, MemoryError)[lines % 2]

    def count(frame: FrameType, event: str) -> None:
        nonlocal lines
        if event == "line" and can_raise(frame):
            lines -= 1
            if lines < 0:
                raise kind

    try:
        traced(call, count)
    except (KeyboardInterrupt, MemoryError):
        return True
    return False


@KERNEL_RULES.rule("threads", "Several threads read at once, each what it asked for.")
def threads(subject: KernelSubject) -> None:
    for geometry in GEOMETRIES[:2]:
        bench = _played(subject.create(), geometry, 40, 200)
        truth = bench.read(np.arange(80))

        def read(seed: int, bench: Workbench = bench, truth: NDArray[np.uint8] = truth) -> bool:
            rng = np.random.default_rng(seed)
            batches = [rng.integers(0, 80, 30) for _ in range(40)]
            return all((bench.read(batch) == truth[batch]).all() for batch in batches)

        with ThreadPoolExecutor(4) as pool:
            expect(all(pool.map(read, range(4))), f"{geometry}: a thread read something else")


@KERNEL_RULES.rule("pickle", "Pickled and copied kernels work.")
def pickled(subject: KernelSubject) -> None:
    bench = Workbench(subject.create(), GEOMETRIES[0], 14, 2)
    copies = cycle((lambda kernels: pickle.loads(pickle.dumps(kernels)), copy.deepcopy))

    def change(step: int) -> None:
        if step % 10 == 5:
            bench.kernels = next(copies)(subject.create() if step % 20 == 5 else bench.kernels)

    _check_playing(0, bench, 60, change)


@KERNEL_RULES.rule("damage", "A chunk that was cut or altered gives wrong frames or a PayloadError, and nothing worse.")
def damage(subject: KernelSubject) -> None:
    rng, bench = np.random.default_rng(0), _played(subject.create(), FrameGeometry(2, 1, 500), 40, 120)
    whole, refused = dict(bench.shelf.packed), 0
    for attempt in range(300):
        for slot, packed in whole.items():
            altered = packed.copy()
            if attempt % 3 == 0:
                altered = altered[: int(rng.integers(0, len(altered)))].copy()
            elif len(altered):
                altered[rng.integers(0, len(altered), 1 + attempt % 4)] = rng.integers(0, 256)
            bench.shelf.packed[slot] = altered
        try:
            bench.read(rng.integers(0, 80, 20))
        except PayloadError:
            refused += 1
    expect(refused > 100, f"only {refused} of 300 batches with damaged chunks were refused")


@KERNEL_RULES.rule("batch-memory", "Memory that is kept between batches is reported, and does not grow with them.")
def batch_memory(subject: KernelSubject) -> None:
    kernels = subject.create()
    if not isinstance(kernels, CachingKernels):
        raise NotApplicable("the kernels do not have the capability CachingKernels")
    expect(kernels.nbytes_for_batches == 0, f"{kernels.nbytes_for_batches} bytes before the first batch")
    bench, reports = Workbench(kernels, FrameGeometry(2, 1, 4000), 60, 1), []
    bench.write(np.arange(60), np.random.default_rng(0).integers(0, 256, (60, 8000), np.uint8))
    was_tracing = tracemalloc.is_tracing()
    tracemalloc.start()
    try:
        begin = tracemalloc.get_traced_memory()[0]
        for _ in range(6):
            bench.read(np.arange(60))
            gc.collect()
            reports.append(kernels.nbytes_for_batches)
        held = tracemalloc.get_traced_memory()[0] - begin
    finally:
        if not was_tracing:
            tracemalloc.stop()
    expect(abs(reports[-1] - held) <= _SLACK, f"{reports[-1]} bytes are reported, {held} are held")
    expect(reports[-1] <= reports[0] + _SLACK, f"equal batches keep more and more: {reports}")


@KERNEL_RULES.rule(
    "overlapping",
    "An observation and the next one are read into one row if all pairs of a batch are shifts; otherwise, nothing is.",
)
def overlapping(subject: KernelSubject) -> None:
    kernels = subject.create()
    if not isinstance(kernels, OverlappingKernels):
        raise NotApplicable("the kernels do not have the capability OverlappingKernels")
    answers = set()
    for number, geometry in enumerate(part for part in GEOMETRIES if part.pixels == 1):
        for streams in (1, 3):
            rng, bench = np.random.default_rng(number), Workbench(kernels, geometry, 7 * streams, streams)
            reference = frames.create(REFERENCE)
            for step, (before, after) in enumerate(pairwise(play(rng, geometry, streams, 120))):
                bench.write(np.arange(streams) + step % 7 * streams, before, after)
                for count in (1, 1, 5):
                    answers.add(_check_overlap(bench, reference, rng.integers(0, 7 * streams, count)))
    expect(answers == {False, True}, f"all answers were {answers.pop()}")


def _check_overlap(bench: Workbench, reference: FrameKernels, cells: Indices) -> bool:
    """Compare overlapping rows, and the answer, with those of the reference; return the answer."""
    geometry, kernels = bench.streams.geometry, bench.kernels
    assert isinstance(reference, OverlappingKernels)
    assert isinstance(kernels, OverlappingKernels)
    room = np.full((len(cells) + 2, geometry.row_nbytes + geometry.frame_nbytes), 0xAB, np.uint8)
    found = kernels.read_overlapping(bench.streams, bench.shelf, cells, room[1:-1])
    expected = reference.read_overlapping(bench.streams, bench.shelf, cells, np.empty_like(room[1:-1]))
    expect(found is expected, f"{geometry}: the answer is {found}, that of the reference {expected}")
    expect((room[[0, -1]] == 0xAB).all(), f"{geometry}: bytes beside the rows were changed")
    if found:
        obs, next_obs = (np.empty((len(cells), geometry.row_nbytes), np.uint8) for _ in range(2))
        reference.read(bench.streams, bench.shelf, cells, obs, next_obs)
        expect((room[1:-1, : geometry.row_nbytes] == obs).all(), f"{geometry}: observations differ")
        expect((room[1:-1, geometry.frame_nbytes :] == next_obs).all(), f"{geometry}: next observations differ")
    else:
        expect((room == 0xAB).all(), f"{geometry}: something was read in spite of the answer")
    return found


@KERNEL_RULES.rule(
    "contiguous", "Arrays are brought into the order of C as numpy does it, bit by bit, each into memory of its own."
)
def contiguous(subject: KernelSubject) -> None:
    kernels = subject.create()
    if not isinstance(kernels, ContiguousKernels):
        raise NotApplicable("the kernels do not have the capability ContiguousKernels")
    kept = []
    for what, array in _arrays(np.random.default_rng(0)):
        before, found = array.copy(), kernels.contiguous(array)
        expect(found.flags.c_contiguous, f"{what}: not C-contiguous")
        expect(found is array or not np.shares_memory(found, array), f"{what}: a view of what was given")
        expect(array.tobytes() == before.tobytes(), f"{what}: what was given has changed")
        kept.append((what, np.ascontiguousarray(array), found))
    for what, expected, found in kept:  # only now: results of earlier calls must not change
        same = (found.shape, found.dtype) == (expected.shape, expected.dtype)
        expect(same, f"{what}: {found.dtype} of {found.shape}, not {expected.dtype} of {expected.shape}")
        expect(found.tobytes() == expected.tobytes(), f"{what}: other values")


def _arrays(rng: np.random.Generator) -> Iterator[tuple[str, NDArray[Any]]]:
    for count in (1, 3):
        for channels in _CHANNELS:
            for height, width in _IMAGES:
                images = rng.integers(0, 256, (count, height, width, channels)).astype(np.uint8)
                name = f"{channels} channels of {height} x {width}"
                yield from _views(f"{count} images, {name}", images)
                yield f"floats, {name}", images.astype(np.float32).transpose(0, 3, 1, 2)
    many = rng.integers(0, 256, (2, 8, 9, 4, 5)).astype(np.uint8)
    yield "five axes", many.transpose(0, 4, 3, 1, 2)
    yield "two axes", many[0, 0, :, :, 0].T
    yield "one axis", many.reshape(-1)[::3]
    yield "no elements", many[:0, :, :, :, 0].transpose(0, 3, 1, 2)


def _views(what: str, images: NDArray[np.uint8]) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    turned = images.transpose(0, 3, 1, 2)
    yield f"{what}, turned", turned
    yield f"{what}, in order", np.ascontiguousarray(turned)
    yield f"{what}, backwards", turned[:, ::-1]
    yield f"{what}, upside down", turned[:, :, ::-1]
    yield f"{what}, every other one", np.repeat(images, 2, axis=0)[::2].transpose(0, 3, 1, 2)
    padded = np.pad(images, ((0, 0), (1, 1), (2, 0), (0, 3)))
    yield f"{what}, a part of each", padded[:, 1:-1, 2:, :-3].transpose(0, 3, 1, 2)
    yield f"{what}, columns first", images.transpose(0, 3, 2, 1)
    frozen = images.copy().transpose(0, 3, 1, 2)
    frozen.flags.writeable = False
    yield f"{what}, read-only", frozen
    yield f"{what}, one for all", np.broadcast_to(turned[:1], turned.shape)

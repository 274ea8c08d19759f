"""Frame kernels on damaged chunks: all of them refuse the same, and decode the same."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sb3_extra_buffers import frames
from sb3_extra_buffers.frames import FrameGeometry
from sb3_extra_buffers.frames.workbench import Workbench, play
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.testing.content import GuardedRows
from scripts.fuzzing.target import FindingError, Target, only_errors_of_ours

_CELLS, _STEPS = 20, 60


def frame_targets() -> Iterator[Target]:
    """A target for each way in which frames may lie."""
    for geometry in (FrameGeometry(2, 1, 500), FrameGeometry(3, 30, 2), FrameGeometry(1, 1, 70)):
        yield _target(geometry)


def _bench(name: str, geometry: FrameGeometry) -> Workbench:
    bench = Workbench(frames.create(name), geometry, _CELLS, 1)
    rows = list(play(np.random.default_rng(0), geometry, 1, _STEPS))
    for step, (before, after) in enumerate(pairwise(rows)):
        bench.write(np.array([step % _CELLS]), before, after)
    return bench


def _target(geometry: FrameGeometry) -> Target:
    """The first byte of an input says in which slot."""
    benches = [_bench(name, geometry) for name in frames.registry.names()]
    whole = dict(benches[0].shelf.packed)
    slots = sorted(whole)
    seeds = [bytes([number]) + bytes(whole[slot]) for number, slot in enumerate(slots)]

    def attack(data: bytes) -> None:
        slot = slots[data[0] % len(slots) if data else 0]
        chunk = np.frombuffer(data[1:], np.uint8)
        found = [_read(bench, {**whole, slot: chunk}, geometry) for bench in benches]
        for bench, other in zip(benches[1:], found[1:]):
            if (found[0] is None) != (other is None):
                refused, decoded = (benches[0], bench) if found[0] is None else (bench, benches[0])
                raise FindingError(f"{refused.kernels.name} refuses what {decoded.kernels.name} decodes")
            if found[0] is not None and other is not None and (found[0] != other).any():
                raise FindingError(f"{bench.kernels.name} decodes something else than {benches[0].kernels.name}")

    return Target(f"frames {geometry}", seeds, attack)


def _read(bench: Workbench, packed: dict[int, Bytes], geometry: FrameGeometry) -> Bytes | None:
    bench.shelf.packed = packed
    references = np.arange(2 * _CELLS)
    out, result = GuardedRows(len(references), geometry.row_nbytes), None
    with only_errors_of_ours():
        bench.kernels.read(bench.streams, bench.shelf, references, out.rows)
        result = out.rows.copy()
    out.expect_bands_intact(bench.kernels.name)
    return result

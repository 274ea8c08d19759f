"""Rules about chunks that something has happened to."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.frames import FrameGeometry
from sb3_extra_buffers.frames.testing.subject import KERNEL_RULES, KernelSubject, Workbench, play
from sb3_extra_buffers.testing.rule import expect


@KERNEL_RULES.rule("damage", "A chunk that was cut or altered gives wrong frames or a PayloadError, and nothing worse.")
def damage(subject: KernelSubject) -> None:
    rng, geometry = np.random.default_rng(0), FrameGeometry(2, 1, 500)
    bench = Workbench(subject.create(), geometry, 40, 1)
    rows = list(play(rng, geometry, 1, 120))
    for step, (before, after) in enumerate(pairwise(rows)):
        bench.write(np.array([step % 40]), before, after)
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

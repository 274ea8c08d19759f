"""Frame kernels that were used before a process was forked or spawned work in the child, and in the parent."""

import copy
from itertools import pairwise

import numpy as np
import pytest

from sb3_extra_buffers import frames
from sb3_extra_buffers.frames import FrameGeometry
from sb3_extra_buffers.frames.workbench import Workbench, play
from sb3_extra_buffers.testing.processes import in_forked_child, in_fresh_process

GEOMETRY = FrameGeometry(4, 30, 2)
CELLS = np.arange(20)


def used(name):
    """Kernels with something stored, and what that is."""
    bench = Workbench(frames.create(name), GEOMETRY, 20, 1)
    truth = np.zeros((20, GEOMETRY.row_nbytes), np.uint8)
    rows = list(play(np.random.default_rng(0), GEOMETRY, 1, 90))
    for step, (before, after) in enumerate(pairwise(rows)):
        bench.write(np.array([step % 20]), before, after)
        truth[step % 20] = before[0]
    return bench, truth


def go_on(bench):
    for rows in play(np.random.default_rng(1), GEOMETRY, 1, 40):
        bench.write(np.array([3]), rows)
        np.testing.assert_array_equal(bench.read(np.array([3])), rows)


@pytest.mark.parametrize("name", frames.registry.names())
def test_after_a_fork(name):
    bench, truth = used(name)

    def in_child():
        np.testing.assert_array_equal(bench.read(CELLS), truth)
        go_on(bench)

    in_forked_child(in_child)
    np.testing.assert_array_equal(bench.read(CELLS), truth)
    go_on(bench)


@pytest.mark.parametrize("name", frames.registry.names())
def test_in_a_spawned_process(name):
    bench, truth = used(name)
    np.testing.assert_array_equal(in_fresh_process(Workbench.read, bench, CELLS), truth)
    np.testing.assert_array_equal(copy.deepcopy(bench).read(CELLS), truth)

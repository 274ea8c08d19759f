"""The command that interrupts ``add``, in a short form: nothing is lost. By itself, it does so at every line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs signals of POSIX")


def run(*arguments, program=("-m", "scripts.inject_interrupts")):
    command = [sys.executable, "-W", "ignore", *program, *arguments]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stdout + done.stderr


def figures(output):
    """Landed, rows, wrong, errors and lost, summed over all buffers."""
    return [int(figure) for figure in next(row for row in output.splitlines() if row.startswith("all ")).split()[1:]]


@pytest.mark.parametrize(
    ("kind", "heap"),
    [
        ("frames", "memory"),
        ("frames", "ring, evicting"),
        ("automatic", "mmap"),
        ("frames, every chunk compressed", "ring"),
        ("cells", "ring, evicting"),
        ("cells, automatic codec", "memory"),
        ("raw", "mmap, evicting"),
        ("optimize_memory_usage, frames", "memory"),
        ("optimize_memory_usage, cells", "ring"),
        ("Dict", "ring, evicting"),
        ("n-step", "memory"),
        ("HER", "memory"),
        ("rollout, frames", "memory"),
        ("rollout, Dict", "mmap"),
    ],
)
def test_an_exception_at_any_line_of_add_loses_only_that_step(kind, heap):
    code, output, all_of_it = run("--part", "lines", "--kind", kind, "--heap", heap, "--every", "19")
    assert code == 0, all_of_it
    assert figures(output)[0] >= 10
    assert figures(output)[2:] == [0, 0, 0]


@pytest.mark.parametrize(
    ("kind", "heap"), [("frames", "ring"), ("HER", "memory"), ("rollout, frames", "memory"), ("rollout, cells", "ring")]
)
def test_an_exception_at_any_line_of_reset_leaves_the_buffer_as_it_was_or_empty(kind, heap):
    code, output, all_of_it = run("--part", "resets", "--kind", kind, "--heap", heap, "--every", "23")
    assert code == 0, all_of_it
    assert figures(output)[0] >= 10
    assert figures(output)[2:] == [0, 0, 0]


@pytest.mark.parametrize("kind", ["frames", "cells", "rollout, frames"])
def test_signals_in_add_lose_only_the_interrupted_steps(kind):
    code, output, all_of_it = run("--part", "signals", "--kind", kind, "--heap", "memory", "--signals", "40")
    assert code == 0, all_of_it
    assert figures(output)[0] >= 40
    assert figures(output)[2:] == [0, 0, 0]


#: A buffer that counts a step before it is written.
_CARELESS = """
import sys
from scripts import inject_interrupts
from sb3_extra_buffers.compressed import CompressedReplayBuffer

code = '''
def add(self, *args):
    before = self.pos
    self.pos = (before + 1) % self.buffer_size
    self.pos = before
    return real(self, *args)
'''
names = {"real": CompressedReplayBuffer.add, "__name__": "sb3_extra_buffers.careless"}
exec(code, names)
CompressedReplayBuffer.add = names["add"]
sys.exit(inject_interrupts.main(sys.argv[1:]))
"""


def test_a_careless_buffer_and_no_interrupt_at_all_are_failures():
    case = "--part", "lines", "--kind", "raw", "--heap", "memory", "--every"
    code, output, all_of_it = run(*case, "1", program=("-c", _CARELESS))
    assert code == 1, all_of_it
    assert "sb3_extra_buffers.careless:5 (add)" in output
    assert "nothing lost" not in output
    code, output, all_of_it = run(*case, "100000")
    assert code == 1, all_of_it
    assert figures(output) == [0, 0, 0, 0, 0]

"""The command that breaks what is saved, a few times each: nothing is lost. By itself, it does so hundreds of times."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("fault", ["first", "kill", "enospc", "limit", "eio", "damage", "readers", "fork"])
def test_nothing_is_lost(fault, tmp_path):
    command = [sys.executable, "-W", "ignore", "-m", "scripts.inject_faults", "--runs", "8", "--only", fault]
    done = subprocess.run([*command, "--folder", str(tmp_path)], cwd=_ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost" in done.stdout
    row = done.stdout.splitlines()[1]
    if "skipped" in row:
        pytest.skip(row)
    figures = row.split()[-5:]
    assert int(figures[0]) >= 8
    assert int(figures[1]) >= 1
    assert figures[2:] == ["0", "0", "0"]


#: Breaks saving in every process that is forked, or keeps faults from reaching it.
_BROKEN = """
import os, sys
from sb3_extra_buffers.compressed.base import BaseCompressedBuffer
from scripts import inject_faults
from scripts.faults import checkpoints

main, save = os.getpid(), BaseCompressedBuffer.save

def broken(self, path):
    if os.getpid() != main:
        raise RuntimeError("broken")
    save(self, path)

if sys.argv[1] == "save":
    BaseCompressedBuffer.save = broken
else:
    checkpoints.FILE_NBYTES = 1 << 40
sys.exit(inject_faults.main(sys.argv[2:]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize(
    ("what", "fault", "told"),
    [
        ("save", "first", "nothing was committed"),
        ("save", "kill", "processes ended by another error"),
        ("save", "limit", "nothing was committed"),
        ("save", "readers", "no fault was injected"),
        ("fault", "limit", "no fault was injected"),
        ("fault", "eio", "no fault was injected"),
    ],
)
def test_figures_that_say_nothing_are_failures(what, fault, told, tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", _BROKEN, what, "--runs", "2", "--only", fault]
    done = subprocess.run([*command, "--folder", str(tmp_path)], cwd=_ROOT, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED: {told}" in done.stdout.replace("FAILED: 2 ", "FAILED: ")
    assert "nothing lost" not in done.stdout

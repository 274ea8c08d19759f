"""The command that breaks what is saved, a few times each: nothing is lost. By itself, it does so hundreds of times."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("fault", ["first", "kill", "heap", "enospc", "limit", "eio", "damage", "readers"])
def test_nothing_is_lost(fault, tmp_path):
    command = [sys.executable, "-W", "ignore", "-m", "scripts.inject_faults", "--runs", "8", "--only", fault]
    done = subprocess.run([*command, "--folder", str(tmp_path)], cwd=_ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost" in done.stdout
    row = done.stdout.splitlines()[1]
    if "skipped" in row:
        pytest.skip(row)
    figures = row.split()[-4:]
    assert int(figures[0]) >= 8
    assert figures[1:] == ["0", "0", "0"]

"""``pytest tests`` collects and runs in an environment with everything."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["browser", "combos", "lowest", "minimal", "outsider", "wheels"])
def test_tests_of_another_session_are_skipped_by_its_name(folder):
    outside = {name: value for name, value in os.environ.items() if name != "NOX_CURRENT_SESSION"}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:xdist", f"tests/{folder}"],
        cwd=ROOT,
        env=outside,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, ran.stdout + ran.stderr
    assert f"Run: nox -s {folder}" in ran.stdout
    assert "error" not in ran.stdout.lower()

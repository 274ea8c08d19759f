"""Other processes: forked, spawned, and fresh ones that watch what is imported."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from sb3_extra_buffers.testing.rule import NotApplicable

_TIMEOUT = 900.0  # far beyond what a busy machine needs


def in_forked_child(call: Callable[[], object]) -> None:
    """Run ``call`` in a forked child and fail if it fails or hangs there."""
    if "fork" not in multiprocessing.get_all_start_methods():
        raise NotApplicable("this platform cannot fork")
    child = multiprocessing.get_context("fork").Process(target=call)
    child.start()
    child.join(_TIMEOUT)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise AssertionError(f"the forked child was still running after {_TIMEOUT:.0f} s")
    if child.exitcode:
        raise AssertionError(f"the forked child ended with exit code {child.exitcode}")


def in_fresh_process(function: Callable[..., Any], *args: Any) -> Any:
    """Run a module-level function in a new interpreter, as ``spawn`` does, and return its result.

    Arguments and result travel by pickle, through files: whatever the child prints is kept for the error.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = os.path.join(folder, "asked"), os.path.join(folder, "answered")
        with open(asked, "wb") as file:
            pickle.dump((function, args), file)
        code = (
            "import pickle, sys\n"
            "function, args = pickle.load(open(sys.argv[1], 'rb'))\n"
            "pickle.dump(function(*args), open(sys.argv[2], 'wb'))\n"
        )
        run_python(code, asked, answered)
        with open(answered, "rb") as file:
            return pickle.load(file)


def attempted_imports(module: str, watched: Sequence[str]) -> list[str]:
    """Import ``module`` in a new interpreter and return which of the watched packages were asked for.

    The watched packages need not be installed: an attempt counts.
    """
    code = (
        "import importlib, sys\n"
        "module, *watched = sys.argv[1:]\n"
        "asked = []\n"
        "class Watch:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in watched:\n"
        "            asked.append(name)\n"
        "sys.meta_path.insert(0, Watch())\n"
        "importlib.import_module(module)\n"
        "print(*asked)\n"
    )
    return run_python(code, module, *watched).split()


def run_python(code: str, *args: str) -> str:
    """Run code in a new interpreter that finds the same packages as this one; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, env=environment, timeout=_TIMEOUT
    )
    if done.returncode:
        raise AssertionError(f"a new interpreter failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout

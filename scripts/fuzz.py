"""Give every decoder and every reader of files bytes that are nearly right, and see that nothing bad comes of it.

``python -m scripts.fuzz --seconds 20`` attacks each target for so long, in a process of its own that may take little
memory: with libFuzzer if atheris is installed, with hypothesis otherwise. It prints a table and fails if there is a
finding: a crash, a hang, an error that is not of the hierarchy, memory beyond what was declared, bytes written beside
the output, or two implementations that disagree.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from sb3_extra_buffers.progress import progress_bar
from scripts.fuzzing.running import INPUT_SECONDS, has_atheris

_CHILD = "scripts.fuzzing.child"
_LINES = 12
#: Compiled kernels, of which libFuzzer sees nothing; and it keeps every result of comparing arrays for ever, so its
#: process would run into its limit of memory.
_UNSEEN = "frames "
#: Where ``scripts`` is found.
_ROOT = Path(__file__).resolve().parents[1]


def attack(name: str, seconds: int, engine: str) -> tuple[int, str]:
    """How often a target was run, and what was found; empty if nothing was."""
    patience = 10 * seconds + 10 * INPUT_SECONDS + 300
    try:
        command = [sys.executable, "-m", _CHILD, name, str(seconds), engine]
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience, cwd=_ROOT)
    except subprocess.TimeoutExpired:
        return 0, f"was still running after {patience} s"
    if engine == "hypothesis" and not done.returncode:
        outcome = json.loads(done.stdout.splitlines()[-1])
        return outcome["executions"], "; ".join(outcome["findings"])
    runs = re.search(r"number_of_executed_units: *(\d+)", done.stderr)
    finding = "" if not done.returncode else "\n".join(done.stderr.splitlines()[-_LINES:]) or f"exit {done.returncode}"
    named = re.search(r"FindingError: .*", done.stdout + done.stderr)
    return int(runs[1]) if runs else 0, named[0] if finding and named else finding


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10, help="for each target (default: 10)")
    parser.add_argument("--only", default="", help="targets whose names contain this")
    default = "atheris" if has_atheris() else "hypothesis"
    parser.add_argument("--engine", choices=["atheris", "hypothesis"], default=default)
    asked = parser.parse_args(arguments)
    listed = subprocess.run([sys.executable, "-m", _CHILD], capture_output=True, text=True, check=True, cwd=_ROOT)
    names = [name for name in listed.stdout.splitlines() if asked.only in name]
    if not names:
        parser.error(f"no target has {asked.only!r} in its name; there are:\n{listed.stdout}")
    print(f"{'target':38} {'engine':10} {'executions':>12}  findings")
    found = 0
    with progress_bar("targets", len(names)) as advance:
        for name in names:
            engine = "hypothesis" if name.startswith(_UNSEEN) else asked.engine
            executions, finding = attack(name, asked.seconds, engine)
            found += bool(finding)
            print(f"{name:38} {engine:10} {executions:12,}  {finding or 'none'}", flush=True)
            advance(1)
    print(f"{len(names)} targets, {found} with findings")
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())

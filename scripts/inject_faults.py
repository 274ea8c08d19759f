"""Break checkpoints and heaps in every way that a machine can, and count what is lost.

``python -m scripts.inject_faults`` prints a table and fails if anything was: a committed state that is gone, a sample
that is wrong, damage that is not found. It also fails if these figures say nothing: no fault has met a save that was
under way, nothing was committed, or a process has ended by an error of its own. It takes some minutes; ``--runs 20``
takes less. It needs the extra ``sb3``, and a system that can fork; what a system does not permit is skipped, and named.

Processes are really killed (SIGKILL, at a random moment), and writes really fail: a tiny file system is full, the
system refuses them at a random size of file, or they raise ``EIO``. Every observation is made from the number of its
step, so whatever is loaded can be checked to the last bit without a second copy.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from scripts.faults.checkpoints import bad_disks, damages, first_kills, kills, readers, size_limits
from scripts.faults.forks import forks
from scripts.faults.full_disks import full_disks
from scripts.faults.tally import NotPermittedError, Tally

FAULTS: dict[str, Callable[[Path, int, random.Random], Tally]] = {
    "first": first_kills,
    "kill": kills,
    "enospc": full_disks,
    "limit": size_limits,
    "eio": bad_disks,
    "damage": damages,
    "readers": readers,
    "fork": forks,
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200, help="how often each fault is tried")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=FAULTS, help="one kind of fault")
    parser.add_argument("--folder", type=Path, help="where; a temporary one if left out")
    given = parser.parse_args(arguments)
    print(f"{'fault':52} {'runs':>6} {'injected':>9} {'lost':>6} {'wrong':>6} {'not found':>10}")
    failures = 0
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for name, inject in FAULTS.items():
            if given.only in (None, name):
                try:
                    tally = inject(Path(folder), given.runs, random.Random(given.seed))
                except NotPermittedError as error:
                    print(f"{name:52} skipped: {error}", flush=True)
                    continue
                failures += tally.failures
                print(tally, flush=True)
    print("nothing lost" if not failures else f"{failures} FAILURES")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())

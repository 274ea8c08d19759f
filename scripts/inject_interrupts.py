"""Interrupt ``add`` of every kind of buffer on every heap, and count what is lost.

``python -m scripts.inject_interrupts`` prints three tables and fails if a row is wrong, a later call fails, or anything
besides the interrupted step is lost. It also fails if no interrupt has landed.

First, ``KeyboardInterrupt`` and ``MemoryError`` are raised by a trace function at the lines of ``add``, ours and those
of Stable-Baselines3, at every step that takes another way through them: the first, the one at which a deferred store
decides, those that complete a chunk, evict, and overwrite. Each interrupt hits a new buffer. The same is done to
``reset``, and to ``get`` of rollouts until the first batch. Then real signals arrive at random moments while steps are
added, hundreds in the life of one buffer.

After each interrupt, every row that can be sampled is compared with Stable-Baselines3's buffer. If the position has not
moved, the step is added again, as a user would who goes on after Ctrl-C. More steps follow, and all rows, samples and a
copy of the buffer are compared.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial

import torch as th

from scripts.faults.interrupts import Outcome, interrupt_at_lines, interrupt_by_signals, interrupt_resets
from scripts.faults.pairs import KINDS, heaps_of


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--part", choices=("lines", "resets", "signals"), help="one of the tables")
    parser.add_argument("--kind", choices=KINDS, action="append", help="one kind of buffer; may be repeated")
    parser.add_argument("--heap", action="append", help="one heap, such as 'ring, evicting'; may be repeated")
    parser.add_argument("--every", type=int, default=1, help="interrupt at every n-th line only")
    parser.add_argument("--all", action="store_true", help="at all lines of each step, not only at new ones")
    parser.add_argument("--signals", type=int, default=200, help="signals that must land in each buffer")
    given = parser.parse_args(arguments)
    th.set_num_threads(1)  # batches are small
    failures = 0
    if given.part in (None, "lines"):
        failures += _table(given, "lines", partial(interrupt_at_lines, every=given.every, all_lines=given.all))
    if given.part in (None, "resets"):
        failures += _table(given, "resets", partial(interrupt_resets, every=given.every))
    if given.part in (None, "signals"):
        failures += _table(given, "signals", partial(interrupt_by_signals, count=given.signals))
    print("nothing lost" if not failures else f"{failures} FAILURES")
    return int(failures > 0)


def _table(given: argparse.Namespace, part: str, interrupt: Callable[..., Outcome]) -> int:
    print(f"{part:32} {'heap':16} {'landed':>7} {'rows':>9} {'wrong':>6} {'errors':>7} {'lost':>5}")
    total = Outcome()
    for kind, heap, options in _pairs(given):
        outcome = interrupt(KINDS[kind], options)
        total.include(outcome)
        print(f"{kind:32} {heap:16} {outcome}", flush=True)
        for line in outcome.details.values():
            print(f"  {line}", flush=True)
    print(f"{'all':32} {'':16} {total}")
    return total.failures


def _pairs(given: argparse.Namespace) -> Iterator[tuple[str, str, dict[str, object]]]:
    for kind in given.kind or KINDS:
        for heap, options in heaps_of(KINDS[kind]).items():
            if not given.heap or heap in given.heap:
                yield kind, heap, options


if __name__ == "__main__":
    sys.exit(main())

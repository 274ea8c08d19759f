"""Trace one ``add``, one ``sample`` and one minibatch of a rollout, and list the files and functions that they cross.

``python -m scripts.walk`` prints the lists, with ``--json`` as JSON; with ``--write`` it renews those in
``docs/architecture.md``. ``tests/together/test_walk.py`` compares them and limits the number of files.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer

ROOT = Path(__file__).resolve().parents[1]
PACKAGES, PAGE = ROOT / "packages", ROOT / "docs" / "architecture.md"
SPACE = spaces.Box(0, 255, (4, 84, 84), np.uint8)
ACTIONS = spaces.Discrete(6)
#: Steps before the trace begins: chunks of 16 frames are complete, and the open one has room for several more.
STEPS = 150
#: For each file, the functions that were called in it.
Walk = dict[str, list[str]]


def screens(count: int) -> Iterator[NDArray[np.uint8]]:
    """Stacks of four gray frames, in each of which a block has moved on. Their channels are last in memory, as in
    observations of Stable-Baselines3's ``VecTransposeImage``.
    """
    stack = np.zeros((1, 84, 84, 4), np.uint8)
    for number in range(count):
        stack = np.roll(stack, -1, axis=3)
        stack[0, :, :, -1] = 87
        stack[0, 40:48, number % 76 : number % 76 + 8, -1] = 200
        yield stack.transpose(0, 3, 1, 2)


def _sources() -> dict[str, str]:
    """For each source file of this repository, by its path in an import folder, the folder in ``packages``."""
    folders = (folder for folder in PACKAGES.iterdir() if folder.is_dir())
    return {
        path.relative_to(folder / "src").as_posix(): folder.name
        for folder in folders
        for path in (folder / "src").rglob("*.py")
    }


def trace(work: Callable[[], object]) -> Walk:
    """The files and functions that a call crosses, in the order of their first calls. Compiled functions are included:
    numba reports their calls to a profiler.
    """
    found: Walk = {}
    sources = _sources()

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        code = frame.f_code
        # The distributions may be installed from wheels, anywhere.
        _, root, rest = Path(code.co_filename).as_posix().rpartition("/sb3_extra_buffers")
        file = f"{root}{rest}"[1:]
        # A comprehension belongs to the function around it.
        if event == "call" and file in sources and not code.co_name.startswith("<"):
            functions = found.setdefault(f"{file} ({sources[file]})", [])
            name = getattr(code, "co_qualname", code.co_name).replace(".<locals>", "")
            if name not in functions:
                functions.append(name)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def walk_replay() -> tuple[Walk, Walk]:
    """The paths of one ``add`` and of one ``sample``."""
    buffer = CompressedReplayBuffer(1000, SPACE, ACTIONS)
    shown = list(screens(STEPS + 2))

    def add(step: int) -> None:
        obs, next_obs = shown[step : step + 2]
        buffer.add(obs, next_obs, np.array([[1]]), np.array([0.5]), np.array([False]), [{}])

    for step in range(STEPS):
        add(step)
    added = trace(lambda: add(STEPS))
    buffer.sample(32)
    return added, trace(lambda: buffer.sample(32))


def walk_rollout() -> Walk:
    """The path of one minibatch of a rollout."""
    buffer = CompressedRolloutBuffer(STEPS, SPACE, ACTIONS)
    zero = th.zeros(1)
    for obs in screens(STEPS):
        buffer.add(obs, np.array([[1]]), np.array([0.5]), np.array([False]), zero, zero)
    buffer.compute_returns_and_advantage(zero, np.array([False]))
    batches = buffer.get(16)
    next(batches)
    return trace(lambda: next(batches))


def walks() -> dict[str, Walk]:
    """All three paths by name."""
    added, sampled = walk_replay()
    return {"add": added, "sample": sampled, "minibatch": walk_rollout()}


def as_text(name: str, walk: Walk) -> str:
    """A path as text: its name, and each file with its functions below."""
    lines = [f"{name}: {len(walk)} files"]
    for file, functions in walk.items():
        lines += [file, *textwrap.wrap(", ".join(functions), 100, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)


def replaced(page: str, found: dict[str, Walk]) -> str:
    """A page with the lists of these paths in the places of its own."""
    for name, walk in found.items():
        before, _, after = re.split(rf"(```text\n{name}: \d+ files\n.*?\n```)", page, maxsplit=1, flags=re.DOTALL)
        page = f"{before}```text\n{as_text(name, walk)}\n```{after}"
    return page


def main() -> None:
    """Print all paths, or write them to the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--write", action="store_true", help="renew the lists in docs/architecture.md")
    arguments, found = parser.parse_args(), walks()
    if arguments.write:
        PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    elif arguments.json:
        print(json.dumps(found, indent=2))
    else:
        print("\n\n".join(as_text(name, walk) for name, walk in found.items()))


if __name__ == "__main__":
    main()

"""Processes that are forked while other threads create and use buffers."""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import threading
import traceback
import warnings
from collections import deque
from pathlib import Path

import numpy as np

from sb3_extra_buffers.compressed import CompressedReplayBuffer
from scripts.faults.steps import LAYOUTS, add, are_right, new_buffer
from scripts.faults.tally import Tally

#: How long a child may take, in seconds, before it counts as hung. It needs a fraction of one.
PATIENCE = 600
_THREADS = 3
_OPTIONS = (*(options for options in LAYOUTS if options.get("heap") != "mmap"), {"layout": "frames", "prefetch": True})


def forks(_: Path, runs: int, rng: random.Random) -> Tally:
    """Fork while threads create buffers; every child finds whole buffers that it can use."""
    tally = Tally("fork while other threads create buffers")
    recent: deque[CompressedReplayBuffer] = deque(maxlen=_THREADS)
    stopped = threading.Event()
    created = [0] * _THREADS
    threads = [threading.Thread(target=_create, args=(n, created, recent, stopped)) for n in range(_THREADS)]
    for thread in threads:
        thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads may break a child: that is what is tested
            # On a busy machine, it takes more forks until one of them has met the creation of a buffer.
            while tally.runs < runs or (not tally.injected and all(thread.is_alive() for thread in threads)):
                before = sum(created)
                stopped.wait(rng.uniform(0, 0.005))
                _count(tally, _fork([*recent]))
                tally.injected += sum(created) > before
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    tally.committed += sum(created)
    return tally


def _create(number: int, created: list[int], recent: deque[CompressedReplayBuffer], stopped: threading.Event) -> None:
    """Create buffers, add to them and sample them, one after the other."""
    while not stopped.is_set():
        buffer = new_buffer(_OPTIONS[created[number] % len(_OPTIONS)])
        recent.append(buffer)
        for first in range(0, 20, 4):
            add(buffer, first, 4)
            buffer.sample(8)
        created[number] += 1


def _fork(buffers: list[CompressedReplayBuffer]) -> int:
    """Use buffers in a forked child; return how it has ended."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        faulthandler.register(signal.SIGALRM, chain=True)  # says where it hangs
        signal.alarm(PATIENCE)
        np.random.seed(0)
        for buffer in buffers:
            _use(buffer)
        _use(new_buffer({}))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _use(buffer: CompressedReplayBuffer) -> None:
    """Check a buffer, go on with it, and check it again."""
    for _ in range(2):
        if buffer.size():
            buffer.sample(8)
            assert are_right(buffer), "a transition is wrong"
        add(buffer, buffer.pos, 3)


def _count(tally: Tally, status: int) -> None:
    tally.runs += 1
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        tally.lost += 1  # it hung
    else:
        tally.wrong += status != 0

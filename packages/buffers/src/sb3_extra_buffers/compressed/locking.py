"""A reentrant lock per buffer, held during every public method and during a fork."""

from __future__ import annotations

import concurrent.futures.thread
import logging
import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np

from sb3_extra_buffers import registry

#: Seconds to wait for a lock before a fork. Then all are released, in case its thread waits for one of them.
_PATIENCE = 1.0


class BufferLock:
    """The lock of a buffer.

    A transition is more than its observations: position, action, reward and payloads change together. So a thread that
    adds or samples holds the whole buffer, and stores need no locks.
    """

    #: A thread that holds a lock may wait for one of a higher rank.
    rank = 0

    def __init__(self) -> None:
        self.lock = RLock()
        with _gate:
            _all.add(self)

    def before_fork(self) -> None:
        """Called when all locks are held."""

    def after_fork(self) -> None:
        """Called in the child, while all locks are held."""


_all: weakref.WeakSet[BufferLock] = weakref.WeakSet()
#: Held while a lock is made, so that none is made during a fork.
_gate = RLock()
_only_fork = RLock()
#: What is held during a fork, so that a child gets whole buffers and locks that it can release.
_held: list[Any] = []


@contextmanager
def forks_wait() -> Iterator[None]:
    """Let forks of other threads wait for the end of the block.

    For a buffer that is being made: plugins are imported and code is compiled, with locks that no child could ever get.
    """
    guard = BufferLock()
    with guard.lock:
        yield


def _hold_all() -> None:
    while not _try_to_hold_all():
        _release_all()
        time.sleep(0.001)
    for lock in tuple(_all):
        lock.before_fork()
    # Last, because a thread that holds a buffer may draw random numbers: a child could never draw any.
    _hold(np.random.get_bit_generator().lock)  # type: ignore[attr-defined]


def _try_to_hold_all() -> bool:
    """Hold all locks and the gate, in this order: a thread that holds a buffer may create another one."""
    _hold(_only_fork)
    known: set[BufferLock] = set()
    while True:
        _hold(_gate)
        new = sorted(set(_all) - known, key=lambda lock: lock.rank)
        if not new:
            return True
        _held.pop().release()
        for lock in new:
            if not lock.lock.acquire(timeout=_PATIENCE):
                return False
            _held.append(lock.lock)
        known.update(new)


def _hold(lock: Any) -> None:
    lock.acquire()
    _held.append(lock)


def _release_all() -> None:
    while _held:
        _held.pop().release()


def _begin_child() -> None:
    for lock in tuple(_all):
        lock.after_fork()
    _release_all()


# Functions that were registered last are called first. A thread that holds a buffer may wait for the locks of these
# modules, so a fork must hold all buffers before their own functions hold them.
_ = concurrent.futures.thread, logging, registry
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_begin_child)

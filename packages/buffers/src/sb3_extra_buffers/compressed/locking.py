"""A reentrant lock per buffer, held during every public method and during a fork."""

from __future__ import annotations

import os
import weakref
from threading import RLock


class BufferLock:
    """The lock of a buffer.

    A transition is more than its observations: position, action, reward and payloads change together. So a thread that
    adds or samples holds the whole buffer, and stores need no locks.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        _all.add(self)


_all: weakref.WeakSet[BufferLock] = weakref.WeakSet()
#: Locks held during a fork, so that a child gets consistent buffers and locks that it can release.
_held: list[BufferLock] = []


def _hold_all() -> None:
    # Always in one order: two threads that fork at the same time must not wait for each other.
    for lock in sorted(_all, key=id):
        lock.lock.acquire()
        _held.append(lock)


def _release_all() -> None:
    while _held:
        _held.pop().lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_release_all)

"""``Turns``: threads use a buffer one after the other."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


class Turns:
    """The lock of a buffer. A copy of the buffer has one of its own.

    A transition is more than its observations: position, action, reward and payloads change together. So whoever adds
    or samples has the whole buffer to itself, and stores need no locks. The owner may enter again.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        _all.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Turns, ()


def in_turn(method: Method) -> Method:
    """Let a method of a buffer wait until no other thread uses the buffer."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._storage.turns.lock:
            return method(self, *args, **kwargs)

    return call  # type: ignore[return-value]


_all: weakref.WeakSet[Turns] = weakref.WeakSet()
#: What is held during a fork, so that a child gets whole buffers, and locks that somebody can open.
_held: list[Turns] = []


def _hold_all() -> None:
    # In one order, whoever forks: two threads that fork at the same time must not wait for each other.
    for turns in sorted(_all, key=id):
        turns.lock.acquire()
        _held.append(turns)


def _release_all() -> None:
    while _held:
        _held.pop().lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_release_all)

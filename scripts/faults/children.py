"""Processes that may be killed, and what they have told before."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

#: What is told besides numbers that were committed: that the next is being saved, and that saving it has failed.
_BEGINS, _FAILED = (1 << 64) - 1, (1 << 64) - 2


@dataclass
class Told:
    """What a process has told.

    :param committed: numbers, in order
    :param failed: how often it could not save, as it was meant to
    :param is_saving: whether it has begun to save, and told nothing since
    :param is_broken: whether it has ended by an error that nobody wanted
    """

    committed: list[int] = field(default_factory=list)
    failed: int = 0
    is_saving: bool = False
    is_broken: bool = False

    def hear(self, number: int) -> None:
        """Take in what was told."""
        self.is_saving = number == _BEGINS
        if number == _FAILED:
            self.failed += 1
        elif number != _BEGINS:
            self.committed.append(number)


def in_child(action: Callable[[int], None], after: int | None = None, delay: float = 0) -> Told:
    """Run something in a forked process, and return what it has told.

    :param action: told where to tell
    :param after: kill it when it has committed so much, begins to save the next, and a while has passed; ``None`` lets
        it end
    :param delay: how long
    """
    reading, telling = os.pipe()
    child = forked(action, telling)
    os.close(telling)
    told = Told()
    while part := os.read(reading, 8):  # numbers are written as a whole, and so they are read
        told.hear(int.from_bytes(part, "little"))
        if after is not None and told.is_saving and len(told.committed) >= after:
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)
            after = None
    os.close(reading)
    told.is_broken = ended_by_itself_badly(child)
    return told


def forked(action: Callable[[int], None], telling: int) -> int:
    """Start a process that does something, and says so if it fails. Returns its number.

    :param action: told where to tell
    :param telling: where to
    """
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        action(telling)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def ended_by_itself_badly(child: int) -> bool:
    """Wait for the end of a process, and say whether it was an error of its own."""
    status = os.waitpid(child, 0)[1]
    return not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL) and status != 0


def begins(telling: int) -> None:
    """Say that something is being saved from now on."""
    _tell(telling, _BEGINS)


def failed(telling: int) -> None:
    """Say that it could not be saved, as was to be expected."""
    _tell(telling, _FAILED)


def tell(telling: int, number: int) -> None:
    """Say a number that is committed."""
    _tell(telling, number)


def _tell(telling: int, number: int) -> None:
    os.write(telling, number.to_bytes(8, "little"))

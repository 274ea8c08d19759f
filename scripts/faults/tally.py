"""What came of a fault, and processes that may be killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass


@dataclass
class Tally:
    """What came of one kind of fault.

    :param fault: which
    :param runs: how often it was injected
    :param lost: how often something was gone that had been committed
    :param wrong: how often something else was there than what had been committed
    :param unfound: how often damage was not found
    """

    fault: str
    runs: int = 0
    lost: int = 0
    wrong: int = 0
    unfound: int = 0

    @property
    def failures(self) -> int:
        return self.lost + self.wrong + self.unfound

    def __str__(self) -> str:
        return f"{self.fault:52} {self.runs:6} {self.lost:6} {self.wrong:6} {self.unfound:10}"


class NotPermittedError(Exception):
    """Why a fault cannot be injected here, in words."""


def in_child(action: Callable[[int], None], after: int | None = None, delay: float = 0) -> list[int]:
    """Run something in a forked process, and return what it has told.

    :param action: told where to tell
    :param after: kill it when it has told so much, and a while has passed; ``None`` lets it end
    :param delay: how long
    """
    reading, told = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with suppress(BaseException):
            action(told)
        os._exit(0)
    os.close(told)
    found = b""
    if after is not None:
        while len(found) < 8 * after and (part := os.read(reading, 8)):
            found += part
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    while part := os.read(reading, 1 << 12):
        found += part
    os.close(reading)
    os.waitpid(child, 0)
    return [int.from_bytes(found[at : at + 8], "little") for at in range(0, len(found) // 8 * 8, 8)]


def tell(told: int, number: int) -> None:
    """Say a number to whoever started this process."""
    os.write(told, number.to_bytes(8, "little"))

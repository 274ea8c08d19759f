"""What came of a fault, and what was told of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Tally:
    """What came of one kind of fault.

    :param fault: which
    :param runs: how often what is there was compared with what was committed
    :param injected: how often the fault has met what it was meant for: a save that failed, or was under way
    :param lost: how often something was gone that had been committed
    :param wrong: how often something else was there than what had been committed
    :param unfound: how often damage was not found
    :param committed: how often something was committed: where nothing is, nothing can be lost
    :param broken: how often a process has ended by an error that was not injected
    """

    fault: str
    runs: int = 0
    injected: int = 0
    lost: int = 0
    wrong: int = 0
    unfound: int = 0
    committed: int = 0
    broken: int = 0

    @property
    def vacuous(self) -> tuple[str, ...]:
        """Why the other figures say nothing, in words."""
        reasons = {
            "no fault was injected": not self.injected,
            "nothing was committed": not self.committed,
            f"{self.broken} processes ended by another error": self.broken > 0,
        }
        return tuple(reason for reason, is_so in reasons.items() if is_so)

    @property
    def failures(self) -> int:
        """How much of it must not be."""
        return self.lost + self.wrong + self.unfound + len(self.vacuous)

    def __str__(self) -> str:
        figures = f"{self.runs:6} {self.injected:9} {self.lost:6} {self.wrong:6} {self.unfound:10}"
        return "\n".join([f"{self.fault:52} {figures}", *(f"  FAILED: {reason}" for reason in self.vacuous)])


class NotPermittedError(Exception):
    """Why a fault cannot be injected here, in words."""

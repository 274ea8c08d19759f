"""What can go wrong where payloads live."""

from __future__ import annotations

from dataclasses import dataclass

from sb3_extra_buffers.errors.base import ExtraBuffersError, sentence_join


class HeapError(ExtraBuffersError):
    """Something about the place where payloads are kept."""


@dataclass(eq=False)
class HeapFullError(HeapError, MemoryError):
    """One row of payloads does not fit, even with everything else evicted; or there is no memory or disk to be had.

    A capacity of 0 says that nothing was allocated at all. ``never_fits`` says that an empty heap would refuse it as
    well, so there is no use in trying again; otherwise there may be room later.
    """

    heap: str
    needed: int
    capacity: int
    hint: str = ""
    never_fits: bool = False

    def explain(self) -> str:
        if not self.capacity:
            return sentence_join(f"{self.heap}: {self.needed} bytes could not be had.", self.hint)
        needed = f"{self.heap}: {self.needed} bytes were needed at once, the capacity is {self.capacity} bytes."
        return sentence_join(needed, self.hint)


@dataclass(eq=False)
class HeapStateError(HeapError, RuntimeError):
    """The heap was asked for something that its present state does not allow."""

    heap: str
    asked: str
    found: str
    hint: str = ""

    def explain(self) -> str:
        return sentence_join(f"{self.heap}: cannot {self.asked}: {self.found}.", self.hint)

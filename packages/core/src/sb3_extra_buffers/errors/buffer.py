"""What can go wrong between a training loop and its buffer."""

from __future__ import annotations

from dataclasses import dataclass

from sb3_extra_buffers.errors.base import ExtraBuffersError, MismatchError, sentence_join


@dataclass(eq=False)
class BufferStateError(ExtraBuffersError, ValueError):
    """The buffer was asked for something that it cannot give in its present state."""

    buffer: str
    asked: str
    found: str
    hint: str = ""

    def explain(self) -> str:
        return sentence_join(f"{self.buffer}: cannot {self.asked}: {self.found}.", self.hint)


class ObservationError(MismatchError, ValueError):
    """A value that was to be stored has the wrong shape, or cannot be stored without changing it."""

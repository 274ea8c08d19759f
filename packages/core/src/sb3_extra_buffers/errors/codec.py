"""What can go wrong while turning cells into payloads and back."""

from __future__ import annotations

from dataclasses import dataclass

from sb3_extra_buffers.errors.base import ExtraBuffersError, sentence_join


class CodecError(ExtraBuffersError):
    """Something about a codec, its cell or its payload."""


@dataclass(eq=False)
class CellMismatchError(CodecError, ValueError):
    """A buffer does not have the size, type or layout of the cell that the codec was bound to."""

    owner: str
    argument: str
    found: str
    expected: str
    hint: str = ""

    def explain(self) -> str:
        return sentence_join(f"{self.owner}: {self.argument} is {self.found}, expected {self.expected}.", self.hint)


@dataclass(eq=False)
class PayloadError(CodecError, ValueError):
    """A payload cannot be decoded: it was cut, extended, altered or written by another codec."""

    codec: str
    payload_nbytes: int
    problem: str
    index: int | None = None

    def explain(self) -> str:
        which = "payload" if self.index is None else f"payload {self.index} of the batch"
        return (
            f"{self.codec}: {which} ({self.payload_nbytes} bytes) cannot be decoded: {self.problem}. "
            "The stored bytes are damaged, or were written by another codec or for another cell."
        )

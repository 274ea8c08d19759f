"""What can go wrong while turning cells into payloads and back."""

from __future__ import annotations

from dataclasses import dataclass

from sb3_extra_buffers.errors.base import ExtraBuffersError, MismatchError


class CodecError(ExtraBuffersError):
    """Something about a codec, its cell or its payload."""


class CellMismatchError(MismatchError, CodecError, ValueError):
    """A buffer does not have the size, type or layout of the cell that the codec was bound to."""


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

"""A request that names a value outside its range."""

from __future__ import annotations

from dataclasses import dataclass

from sb3_extra_buffers.errors.base import ExtraBuffersError, sentence_join


@dataclass(eq=False)
class ParameterError(ExtraBuffersError, ValueError):
    """A codec or heap was asked for with a parameter that it does not take."""

    owner: str
    parameter: str
    value: object
    allowed: str
    hint: str = ""

    def explain(self) -> str:
        return sentence_join(
            f"{self.owner}: {self.parameter}={self.value!r} is not allowed; {self.allowed}.", self.hint
        )

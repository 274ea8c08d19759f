"""The root of the hierarchy and what every error of this project can do."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any


class ExtraBuffersError(Exception):
    """Root of every error that this project raises on purpose.

    Subclasses are dataclasses: their fields are the facts, ``explain`` turns the facts into a sentence.
    Keeping the two apart lets an error travel through a pipe (``SubprocVecEnv`` pickles exceptions) and be
    inspected by code without parsing its text.
    """

    def explain(self) -> str:
        """Say what was asked, what was found, what is allowed and what to do next."""
        return type(self).__name__

    def __str__(self) -> str:
        return self.explain()

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with ``self.args``, which is empty when fields were given by keyword.
        assert is_dataclass(self)
        return _rebuild, (type(self), {field.name: getattr(self, field.name) for field in fields(self)})


def _rebuild(kind: type[ExtraBuffersError], facts: dict[str, Any]) -> ExtraBuffersError:
    return kind(**facts)


def sentence_join(*parts: str) -> str:
    """Join the sentences that have something to say."""
    return " ".join(part for part in parts if part)


@dataclass(eq=False)
class MismatchError(ExtraBuffersError):
    """An argument is something else than it must be."""

    owner: str
    argument: str
    found: str
    expected: str
    hint: str = ""

    def explain(self) -> str:
        return sentence_join(f"{self.owner}: {self.argument} is {self.found}, expected {self.expected}.", self.hint)

"""What a rule is: an id, one sentence, and a check that fails with both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

S = TypeVar("S")
Check = Callable[[S], None]


class BrokenRule(AssertionError):
    """A codec or heap does not keep a rule. The message is the rule, followed by what was seen."""

    def __init__(self, rule_id: str, sentence: str, subject: str, detail: str) -> None:
        super().__init__(f"[{rule_id}] {sentence}\n    {subject}: {detail}")
        self.rule_id = rule_id


class NotApplicable(Exception):
    """The rule says nothing about this subject. The message says why."""


@dataclass(frozen=True)
class Rule(Generic[S]):
    """One sentence of a contract and the check that holds a subject to it."""

    id: str
    sentence: str
    check: Check[S]

    def verify(self, subject: S) -> None:
        """Run the check.

        :raise BrokenRule: if it fails, in whatever way
        :raise NotApplicable: if the rule is about something that the subject does not have
        """
        try:
            self.check(subject)
        except NotApplicable:
            raise
        except Exception as error:
            detail = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
            raise BrokenRule(self.id, self.sentence, str(subject), detail) from error


class RuleBook(Generic[S]):
    """The rules of one contract, in the order in which they are written down."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule[S]] = {}

    def rule(self, rule_id: str, sentence: str) -> Callable[[Check[S]], Check[S]]:
        """Enter a check under an id, with the sentence that it enforces."""

        def enter(check: Check[S]) -> Check[S]:
            if rule_id in self._rules:
                raise ValueError(f"rule {rule_id!r} is written down twice")
            self._rules[rule_id] = Rule(rule_id, sentence, check)
            return check

        return enter

    def __iter__(self) -> Iterator[Rule[S]]:
        return iter(self._rules.values())

    def __getitem__(self, rule_id: str) -> Rule[S]:
        return self._rules[rule_id]

    def __len__(self) -> int:
        return len(self._rules)

    def __contains__(self, rule_id: object) -> bool:
        return rule_id in self._rules


def expect(condition: object, detail: str) -> None:
    """Fail with ``detail`` unless the condition holds. Unlike ``assert``, it also works under ``python -O``."""
    if not condition:
        raise AssertionError(detail)


def expect_raises(kind: type[Exception], what: str, call: Callable[..., object], *args: Any, **kwargs: Any) -> None:
    """Fail unless ``call(*args, **kwargs)`` raises ``kind``; ``what`` says in words what was tried."""
    try:
        call(*args, **kwargs)
    except kind:
        return
    except Exception as error:
        raise AssertionError(f"{what}: expected {kind.__name__}, got {type(error).__name__}: {error}") from error
    raise AssertionError(f"{what}: expected {kind.__name__}, but nothing was raised")

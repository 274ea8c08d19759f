"""Which rules a subject breaks."""

from sb3_extra_buffers.testing import BrokenRule, NotApplicable


def breaks(rule, subject):
    """Whether the subject breaks the rule, and the error says which."""
    try:
        rule.verify(subject)
    except NotApplicable:
        return False
    except BrokenRule as error:
        if not str(error).startswith(f"[{rule.id}] {rule.sentence}\n    {subject}: "):
            raise RuntimeError(f"the error does not state the rule: {error}") from error
        return True
    return False


def broken_rules(rules, subject):
    """The ids of all rules that the subject breaks."""
    return {rule.id for rule in rules if breaks(rule, subject)}

"""The kit is held to its word: it passes what is honest and says exactly what each lying heap breaks."""

import pytest
from lying_heaps import LIARS, HonestRing, plugin
from verdict import broken_rules

from sb3_extra_buffers.testing import HEAP_RULES, HeapSubject


@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.__name__)
def test_each_liar_breaks_exactly_the_rules_that_it_names(liar):
    parameters = {"capacity": 1 << 22} if issubclass(liar, HonestRing) else {}
    assert broken_rules(HEAP_RULES, HeapSubject("liar", plugin(liar), parameters)) == liar.breaks


def test_every_rule_is_broken_by_somebody():
    assert set().union(*(liar.breaks for liar in LIARS)) == {rule.id for rule in HEAP_RULES}

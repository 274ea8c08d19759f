"""The kit is held to its word: it passes what is honest and says exactly what each lying heap breaks."""

import threading

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


class LockedRing(HonestRing):
    """Writes under a lock. Keeps every rule."""

    def __init__(self, cells, capacity):
        super().__init__(cells, capacity)
        self._lock = threading.Lock()

    def _store(self, cells, payloads, lengths):
        assert not self._lock.locked(), "an interrupt has left the lock locked"
        with self._lock:
            try:
                super()._store(cells, payloads, lengths)
            except ZeroDivisionError:
                raise AssertionError("nothing is divided here") from None


def test_interrupts_come_only_where_python_releases_locks():
    subject = HeapSubject("locked", plugin(LockedRing), {"capacity": 1 << 22})
    HEAP_RULES["interrupts"].verify(subject)

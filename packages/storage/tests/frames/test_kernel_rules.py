"""The kit is held to its word: it passes what is honest and says exactly what lying frame kernels break."""

from dataclasses import dataclass
from threading import Lock

import pytest
from lying_kernels import LIARS
from verdict import broken_rules

from sb3_extra_buffers.frames.numpy_kernels import NumpyKernels
from sb3_extra_buffers.testing import KERNEL_RULES, KernelSubject, NotApplicable


@dataclass(frozen=True)
class Subject(KernelSubject):
    """Kernels that are not installed."""

    kind: type

    def create(self):
        return self.kind()


@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.__name__)
def test_each_liar_breaks_exactly_the_rules_that_it_names(liar):
    assert broken_rules(KERNEL_RULES, Subject("numpy", liar)) == liar.breaks


def test_every_rule_is_broken_by_somebody():
    assert set().union(*(liar.breaks for liar in LIARS)) == {rule.id for rule in KERNEL_RULES}


class Locking(NumpyKernels):
    """Kernels with a lock, in which an exception at a line that does nothing would leave it locked."""

    def __init__(self):
        super().__init__()
        self.lock = Lock()

    def write(self, *args):
        assert not self.lock.locked()  # instead of waiting forever
        with self.lock:
            try:
                return super().write(*args)
            finally:
                del args


def test_kernels_that_lock_are_interrupted_only_where_a_lock_is_released():
    KERNEL_RULES["interrupts"].verify(Subject("numpy", Locking))


class Plain:
    """Only what is required."""

    def __init__(self):
        reference = NumpyKernels()
        self.name, self.write, self.read, self.measure = "plain", reference.write, reference.read, reference.measure


@pytest.mark.parametrize("rule", KERNEL_RULES, ids=lambda rule: rule.id)
def test_an_absent_capability_is_skipped_by_its_name(rule):
    capabilities = {
        "contiguous": "ContiguousKernels",
        "batch-memory": "CachingKernels",
        "overlapping": "OverlappingKernels",
    }
    capability = capabilities.get(rule.id)
    if capability is None:
        rule.verify(Subject("plain", Plain))
    else:
        with pytest.raises(NotApplicable, match=f"do not have the capability {capability}"):
            rule.verify(Subject("plain", Plain))

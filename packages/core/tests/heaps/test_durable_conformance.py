"""With a limit on what is resident, or with a name, the heap in a file keeps the rules of all heaps."""

from dataclasses import replace
from itertools import count

import pytest

from sb3_extra_buffers.heaps import registry
from sb3_extra_buffers.testing import HeapConformance
from sb3_extra_buffers.testing.heap_rules import HEAP_RULES
from sb3_extra_buffers.testing.heap_subject import HeapSubject
from sb3_extra_buffers.testing.rule import NotApplicable


class TestMmapWithALimit(HeapConformance):
    heap = "mmap"
    parameters = {"capacity": 1 << 22, "resident": 1 << 17}


@pytest.mark.parametrize("rule", HEAP_RULES, ids=lambda rule: rule.id)
def test_rule_with_a_name(rule, tmp_path):
    plugin, number = registry.load("mmap"), count()

    def factory(cells, **parameters):
        # The kit makes several heaps with the same parameters, and each needs a file of its own.
        return plugin.factory(cells, **{**parameters, "path": str(tmp_path / str(next(number)))})

    try:
        rule.verify(HeapSubject("mmap", replace(plugin, factory=factory), {"capacity": 1 << 22, "resident": 1 << 20}))
    except NotApplicable as reason:
        pytest.skip(f"[{rule.id}] does not apply: {reason}")

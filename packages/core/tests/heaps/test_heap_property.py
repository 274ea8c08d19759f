"""Every heap against a dictionary and a queue of rows, under random sequences of operations."""

from heap_models import HeapMachine
from hypothesis import settings

SETTINGS = settings(max_examples=40, stateful_step_count=40, deadline=None, derandomize=True)


class Memory(HeapMachine):
    name, evicts = "memory", False


class Ring(HeapMachine):
    name, evicts = "ring", True


TestMemory, TestRing = Memory.TestCase, Ring.TestCase
TestMemory.settings = TestRing.settings = SETTINGS

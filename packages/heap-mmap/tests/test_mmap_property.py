"""The heap mmap against a dictionary and a queue of rows, under random sequences of operations."""

from heap_models import HeapMachine
from hypothesis import settings

SETTINGS = settings(max_examples=40, stateful_step_count=40, deadline=None, derandomize=True)


class Mmap(HeapMachine):
    name, evicts = "mmap", True


TestMmap = Mmap.TestCase
TestMmap.settings = SETTINGS

"""The built-in heaps keep every rule of the contract."""

from sb3_extra_buffers.testing import HeapConformance


class TestMemory(HeapConformance):
    heap = "memory"


class TestRing(HeapConformance):
    heap = "ring"
    parameters = {"capacity": 1 << 22}

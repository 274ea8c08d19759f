"""The heap ``mmap`` keeps every rule of the contract."""

from sb3_extra_buffers.testing import HeapConformance


class TestMmap(HeapConformance):
    heap = "mmap"
    parameters = {"capacity": 1 << 22}

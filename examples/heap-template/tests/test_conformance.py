from sb3_extra_buffers.testing import HeapConformance


class TestFifo(HeapConformance):
    heap = "fifo"
    parameters = {"capacity": 1 << 22}

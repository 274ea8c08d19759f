"""Heaps on a device keep to the contract of all heaps. Here, the device is the CPU."""

from sb3_extra_buffers.testing import HeapConformance


class TestGrowing(HeapConformance):
    heap = "device"
    parameters = {"device": "cpu"}


class TestRing(HeapConformance):
    heap = "device-ring"
    parameters = {"capacity": 1 << 22, "device": "cpu"}

"""Heaps on a device follow the contract of all heaps. Here, the device is the CPU."""

import pytest

from sb3_extra_buffers import heaps
from sb3_extra_buffers.heaps import (
    DirectHeap,
    FileHeap,
    MovingHeap,
    RemoteHeap,
    SizedHeap,
    StatefulHeap,
    StrictHeap,
)
from sb3_extra_buffers.testing import HeapConformance

CAPABILITIES = (DirectHeap, FileHeap, MovingHeap, RemoteHeap, SizedHeap, StatefulHeap, StrictHeap)


class TestGrowing(HeapConformance):
    heap = "device"
    parameters = {"device": "cpu"}


class TestRing(HeapConformance):
    heap = "device-ring"
    parameters = {"capacity": 1 << 22, "device": "cpu", "on_full": "evict"}


class TestRingThatRefuses(HeapConformance):
    heap = "device-ring"
    parameters = {"capacity": 1 << 22, "device": "cpu"}


@pytest.mark.parametrize(
    ("name", "parameters", "has"),
    [
        ("device", {}, {MovingHeap, RemoteHeap, StatefulHeap}),
        ("device-ring", {"capacity": 1 << 20}, {MovingHeap, RemoteHeap, SizedHeap, StatefulHeap, StrictHeap}),
    ],
)
def test_capabilities(name, parameters, has):
    heap = heaps.create(name, 10, device="cpu", **parameters)
    assert {capability for capability in CAPABILITIES if isinstance(heap, capability)} == has
    plugin = heaps.registry.load(name)
    assert plugin.grows == (name == "device")
    assert (plugin.in_memory, plugin.fits_worst_case, plugin.local) == (False, False, ())

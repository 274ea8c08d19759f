"""What heaps on a device promise besides the contract of all heaps."""

import pickle

import numpy as np
import pytest
import torch as th

from sb3_extra_buffers import heaps
from sb3_extra_buffers.errors import DeviceError, HeapFullError, ParameterError
from sb3_extra_buffers.gpu_buffers import SharedRawHeap

RANDOM = np.random.default_rng(0)


def put(heap, cells, payloads):
    room = heap.reserve(np.array(cells), sum(map(len, payloads)))
    room[:] = np.frombuffer(b"".join(payloads), np.uint8)
    heap.commit(np.array([len(payload) for payload in payloads]))


def made(name):
    return heaps.create(name, 50, device="cpu", **({"capacity": 1 << 16} if name == "device-ring" else {}))


@pytest.mark.parametrize("name", ["device", "device-ring"])
def test_payloads_begin_at_multiples_of_16(name):
    heap = made(name)
    for step in range(120):
        put(heap, [step % 50, (step + 25) % 50], [RANDOM.bytes(1 + step % 70), RANDOM.bytes(3)])
        starts, lengths = heap.locate(np.arange(50))
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
        assert not (heap.device_addresses(starts, lengths) % np.uint64(16)).any()


@pytest.mark.parametrize("name", ["device", "device-ring"])
def test_gathered_in_one_piece(name):
    heap, payloads = made(name), [RANDOM.bytes(n) for n in (5, 160, 1, 33)]
    put(heap, range(4), payloads)
    order = np.array([3, 0, 2, 3, 1])
    assert heap.gather(*heap.locate(order)).tobytes() == b"".join(payloads[number] for number in order)
    assert heap.gather(*heap.locate(order[:0])).tobytes() == b""


@pytest.mark.parametrize("name", ["device", "device-ring"])
def test_live_counts_payloads_and_not_what_is_between_them(name):
    heap = made(name)
    put(heap, [0, 1], [b"x" * 5, b"y" * 17])
    assert heap.live == 22
    put(heap, [0], [b"z"])
    assert heap.live == 18
    assert pickle.loads(pickle.dumps(heap)).live == 18


def ring(on_full="evict"):
    return SharedRawHeap(10, 320, "cpu", on_full=on_full)


def test_the_table_of_a_ring_as_tensors():
    heap = ring()
    put(heap, [4, 7], [b"four", b"seven" * 4])
    assert heap.start_idx.tolist() == [0, 0, 0, 0, 0, 0, 0, 16, 0, 0]
    assert heap.lengths.tolist() == [0, 0, 0, 0, 4, 0, 0, 20, 0, 0]
    assert heap.data_end == 48
    assert bytes(heap.buffer.bytes[16:36].tolist()) == b"seven" * 4


def test_packing_closes_holes_and_keeps_payloads():
    heap = ring()
    for cell in range(10):
        put(heap, [cell], [bytes([cell]) * 20])
    for cell in (1, 3, 5):  # their old payloads stay behind
        put(heap, [cell], [bytes([cell]) * 3])
    held = {
        cell: bytes(heap.view(*(n.item() for n in heap.locate(np.array([cell])))))
        for cell in np.flatnonzero(heap.lengths)
    }
    used = heap.data_end
    heap.compact()
    assert heap.data_end < used
    assert heap.data_end == sum(-(-len(payload) // 16) * 16 for payload in held.values())
    for cell, payload in held.items():
        assert bytes(heap.view(*(n.item() for n in heap.locate(np.array([cell]))))) == payload
    assert sorted(heap.start_idx[heap.lengths > 0].tolist())[0] == 0


def test_making_room_packs_or_refuses():
    heap = ring()
    for cell in range(5):
        put(heap, [cell], [b"x" * 64])
    for _ in range(2):
        put(heap, [0], [b"y"])  # 16 bytes instead of 64, behind the others
    heap.ensure_space(1)
    with pytest.raises(HeapFullError, match="heap_bytes"):
        heap.ensure_space(200)
    with pytest.raises(HeapFullError, match="heap_bytes"):
        heap.ensure_space(1000)


def test_refusing_changes_nothing():
    heap = SharedRawHeap(10, 320, "cpu")
    for cell in range(5):
        put(heap, [cell], [bytes([cell]) * 64])
    before = heap.gather(*heap.locate(np.arange(5))).tobytes()
    with pytest.raises(HeapFullError, match="on_full='evict'"):
        put(heap, [7], [b"z"])
    assert heap.gather(*heap.locate(np.arange(5))).tobytes() == before
    put(heap, [0], [b"y" * 64])  # takes the place of what it replaces
    assert heap.evicted.cells == 0
    assert pickle.loads(pickle.dumps(heap)).on_full == "raise"


@pytest.mark.parametrize(("options", "word"), [({"heap_bytes": 15}, "heap_bytes"), ({"on_full": "grow"}, "on_full")])
def test_what_a_ring_refuses(options, word):
    with pytest.raises(ParameterError, match=word):
        SharedRawHeap(**{"n_cells": 4, "heap_bytes": 100, **options})


@pytest.mark.parametrize("device", ["nowhere", "cuda:99"])
def test_a_device_that_is_not_there(device):
    with pytest.raises(DeviceError, match="Devices here: cpu"):
        heaps.create("device", 5, device=device)


@pytest.mark.parametrize("name", ["device", "device-ring"])
def test_packing_brings_data_end_down_to_the_payloads(name):
    heap = made(name)
    for cell in range(50):
        put(heap, [cell], [bytes([cell]) * 40])
    for cell in range(0, 50, 2):  # a hole in front of every second one
        put(heap, [cell], [bytes([cell]) * 5])
    assert heap.data_end > 25 * 48 + 25 * 16
    heap.compact()
    assert heap.data_end == 25 * 48 + 25 * 16
    assert heap.lengths.tolist() == [5, 40] * 25
    found = heap.gather(*heap.locate(np.arange(50))).tobytes()
    assert found == b"".join(bytes([cell]) * (40 if cell % 2 else 5) for cell in range(50))


@pytest.mark.parametrize("name", ["device", "device-ring"])
def test_packing_that_is_interrupted_changes_nothing(name, monkeypatch):
    heap = made(name)
    for cell in range(50):
        put(heap, [cell], [bytes([cell]) * 40])

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(heap), "_store", interrupt)
        with pytest.raises(KeyboardInterrupt):
            heap.compact()
    found = heap.gather(*heap.locate(np.arange(50))).tobytes()
    assert found == b"".join(bytes([cell]) * 40 for cell in range(50))


@pytest.mark.parametrize("name", ["device", "device-ring"])
def test_moving_keeps_everything(name):
    heap = made(name)
    payloads = [RANDOM.bytes(1 + n) for n in range(50)]
    for cell, payload in enumerate(payloads):
        put(heap, [cell], [payload])
    heap.to("cpu")
    assert heap.gather(*heap.locate(np.arange(50))).tobytes() == b"".join(payloads)
    assert heap.device == th.device("cpu")


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 3), (1,)])
@pytest.mark.parametrize("dtype", ["u1", "f4", "i8"])
def test_arrays_of_any_shape_are_uploaded(shape, dtype):
    array = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    found = made("device").uploaded(array)
    assert (found.shape, found.numpy().dtype) == (shape, array.dtype)
    assert found.numpy().tobytes() == array.tobytes()

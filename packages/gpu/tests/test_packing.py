"""When a ring is packed: never while that can be helped, and always before something is lost that has room."""

import numpy as np
import pytest
import torch as th

from sb3_extra_buffers.gpu_buffers import SharedRawHeap, create_observation_store
from sb3_extra_buffers.gpu_buffers.compression_methods import compressor, decompressor

CELLS, NBYTES = 60, 1008
NOISE = th.from_numpy(np.random.default_rng(0).integers(256, size=(400, NBYTES), dtype=np.uint8))
#: So all payloads have one size.
AS_IT_IS = {"compress": compressor("none"), "decompress": decompressor("none")}


@pytest.fixture
def packed(monkeypatch):
    """One entry for each time that a heap is packed."""
    times, pack = [], SharedRawHeap.compact
    monkeypatch.setattr(SharedRawHeap, "compact", lambda heap: (times.append(1), pack(heap)))
    return times


def filled(payloads, **options):
    """A store with room for so many of its largest observations, each written once."""
    heap = SharedRawHeap(CELLS, payloads * NBYTES, "cpu", **{"on_full": "evict", **options})
    store = create_observation_store("gzip", CELLS, 1, NBYTES, th.uint8, "cpu", shared_heap=heap, **AS_IT_IS)
    for cell in range(CELLS if not options else payloads):
        store.write(cell, 0, NOISE[cell])
    return store, heap


@pytest.mark.parametrize("payloads", [CELLS // 2, CELLS * 9 // 10, CELLS - 1])
def test_a_ring_that_is_too_small_is_packed_once_for_an_eighth_of_it_that_is_written(payloads, packed):
    store, heap = filled(payloads)
    for number, cell in enumerate(np.random.default_rng(0).integers(0, CELLS, 300).tolist()):
        store.write(cell, 0, NOISE[number])
        assert th.equal(store.read(cell, 0), NOISE[number])
    assert heap.evicted.cells
    assert len(packed) <= (CELLS + 300) / (payloads // 8)


@pytest.mark.parametrize("payloads", [CELLS, CELLS + 1])
def test_a_ring_with_room_for_all_loses_nothing_however_few_bytes_packing_frees(payloads, packed):
    store, heap = filled(payloads)
    shown = dict(enumerate(NOISE[:CELLS]))
    for number, cell in enumerate(np.random.default_rng(0).integers(0, CELLS, 100).tolist()):
        shown[cell] = NOISE[100 + number]
        store.write(cell, 0, shown[cell])
    assert packed
    assert not heap.evicted.cells
    assert all(th.equal(store.read(cell, 0), value) for cell, value in shown.items())


def test_a_ring_that_refuses_is_packed_rather_than_refuse_what_has_room(packed):
    store, _ = filled(CELLS - 2, on_full="raise")
    for number in range(5):
        store.write(7 * number, 0, NOISE[100 + number])
        assert th.equal(store.read(7 * number, 0), NOISE[100 + number])
    assert packed
    assert th.equal(store.read(1, 0), NOISE[1])


def test_what_is_rewritten_in_order_takes_the_place_of_what_it_replaces_and_nothing_is_packed(packed):
    store, heap = filled(CELLS)
    for number in range(3 * CELLS):
        store.write(number % CELLS, 0, NOISE[number])
    assert (len(packed), heap.evicted.cells) == (0, 0)
    assert all(th.equal(store.read(cell, 0), NOISE[2 * CELLS + cell]) for cell in range(CELLS))

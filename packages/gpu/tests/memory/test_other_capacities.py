"""What a ring on a device takes over of one that had another capacity: all of it, or nothing."""

import numpy as np
import pytest

from sb3_extra_buffers.checkpoints import Piece, State, StateError
from sb3_extra_buffers.gpu_buffers import SharedRawHeap
from sb3_extra_buffers.testing.heap_subject import held, payload, put

CELLS, CAPACITY = 30, 3008


def fill(heaps, first, steps):
    for step in range(first, first + steps):
        for heap in heaps:
            put(heap, [step % CELLS, (step + 11) % CELLS], [payload(0, step, 70), payload(1, step, 100 + step % 50)])


def moved(heap, capacity, change=None, **options):
    """Another ring with what this one would save."""
    state = heap.state()
    pieces = {log.key: [Piece(log.begin, np.concatenate(log.read(log.begin, log.end)))] for log in state.logs}
    arrays = {key: array.copy() for key, array in state.arrays.items()}
    if change is not None:
        change(arrays)
    twin = SharedRawHeap(CELLS, capacity, "cpu", **{"on_full": "evict", **options})
    twin.restore(State(state.facts, arrays, [], pieces))
    return twin


@pytest.mark.parametrize("steps", [3, 40, 41, 77, 200])
@pytest.mark.parametrize("on_full", ["evict", "raise"])
@pytest.mark.parametrize("capacity", [*range(CAPACITY - 64, CAPACITY + 160, 16), 4080, 5008, 1 << 20])
def test_what_fits_into_another_capacity_can_be_read_there_and_goes_on(steps, on_full, capacity):
    heap = SharedRawHeap(CELLS, CAPACITY, "cpu", on_full="evict")
    fill([heap], 0, steps)
    there = moved(heap, capacity, on_full=on_full)
    assert held(there) == held(heap)
    assert (there.live, there.evicted) == (heap.live, heap.evicted)
    back = moved(there, CAPACITY)
    assert held(back) == held(heap)
    fill([back], steps, 9)
    newest = held(back)
    for step in range(steps + 5, steps + 9):
        assert newest[step % CELLS] == payload(0, step, 70)


def test_what_has_become_little_fits_into_a_smaller_ring():
    heap = SharedRawHeap(CELLS, CAPACITY, "cpu", on_full="evict")
    fill([heap], 0, 90)
    for step in range(90):
        put(heap, [step % CELLS], [payload(step % CELLS, step, 5)])
    there = moved(heap, 16 * CELLS)
    assert held(there) == held(heap)
    assert len(held(there)) == CELLS


@pytest.mark.parametrize("capacity", [16, 992, 2048])
def test_what_does_not_fit_into_another_capacity_is_refused(capacity):
    heap = SharedRawHeap(CELLS, CAPACITY, "cpu", on_full="evict")
    fill([heap], 0, 40)
    with pytest.raises(StateError, match=f"bytes of payloads were saved, the capacity is {capacity} bytes"):
        moved(heap, capacity)


@pytest.mark.parametrize("name", ["starts", "lengths"])
def test_payloads_beside_the_places_that_kernels_read_are_refused(name):
    heap = SharedRawHeap(CELLS, CAPACITY, "cpu", on_full="evict")
    fill([heap], 0, 3)

    def shifted(arrays):
        arrays[name][arrays["starts"].argmax()] -= 8

    with pytest.raises(StateError, match="multiple of 16"):
        moved(heap, CAPACITY, shifted)


def test_an_order_of_writing_that_lacks_a_payload_is_refused():
    heap = SharedRawHeap(CELLS, CAPACITY, "cpu", on_full="evict")
    fill([heap], 0, 40)

    def twice(arrays):
        cells = next(array for key, array in arrays.items() if key.endswith("cells"))
        cells[-1] = cells[-2]

    with pytest.raises(StateError, match="does not name every payload once"):
        moved(heap, 4080, twice)

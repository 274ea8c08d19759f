"""Memory of batches is used again, and never while somebody still looks at it."""

import copy
import pickle
import threading

import numpy as np
import pytest

from sb3_extra_buffers.frames.batch_memory import BatchMemory

SHAPE, DTYPE = (32, 4096), np.dtype(np.uint8)


def place(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", ["uint8", "float32", ">f8", "int64"])
def test_an_array_is_what_was_asked_for(dtype):
    array = BatchMemory().empty((3, 5, 7000), np.dtype(dtype))
    assert (array.shape, array.dtype) == ((3, 5, 7000), np.dtype(dtype))
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.flags.aligned


def test_memory_that_nobody_holds_is_used_again():
    memory = BatchMemory()
    first = memory.empty(SHAPE, DTYPE)
    before = place(first)
    del first
    assert place(memory.empty(SHAPE, DTYPE)) == before
    assert memory.nbytes == SHAPE[0] * SHAPE[1]


def test_two_batches_take_turns_as_in_a_training_loop():
    memory, places = BatchMemory(), set()
    batch = None
    for _ in range(10):
        batch = memory.empty(SHAPE, DTYPE)  # the one before is still held while this one is made
        places.add(place(batch))
    assert len(places) == 2
    assert memory.nbytes == 2 * batch.nbytes


def test_of_what_nobody_holds_the_memory_that_was_used_last_comes_first():
    memory = BatchMemory()
    batches = [memory.empty(SHAPE, DTYPE) for _ in range(2)]
    last = place(batches[1])
    batches.clear()
    assert [place(memory.empty(SHAPE, DTYPE)) for _ in range(3)] == [last] * 3


@pytest.mark.parametrize(
    "held",
    [
        lambda array: array,
        lambda array: array[3:5],
        lambda array: array.reshape(-1).view(np.int16)[7::100],
        lambda array: memoryview(array),
        lambda array: iter(array),
    ],
)
def test_memory_that_is_held_in_any_way_is_left_alone(held):
    memory = BatchMemory()
    array = memory.empty(SHAPE, DTYPE)
    before, holder = place(array), held(array)
    del array
    others = [memory.empty(SHAPE, DTYPE) for _ in range(4)]
    assert before not in {place(other) for other in others}
    del holder


def test_what_is_all_held_is_not_kept_for_ever():
    memory = BatchMemory()
    batches = [memory.empty(SHAPE, DTYPE) for _ in range(20)]
    assert len({place(batch) for batch in batches}) == 20
    assert memory.nbytes == 2 * batches[0].nbytes


def test_small_and_huge_arrays_are_not_kept():
    memory = BatchMemory()
    memory.empty((10,), DTYPE)
    memory.empty((1 << 27,), DTYPE)
    assert memory.nbytes == 0


def test_a_larger_block_serves_a_smaller_batch():
    memory = BatchMemory()
    before = place(memory.empty(SHAPE, DTYPE))
    smaller = memory.empty((SHAPE[0] - 1, SHAPE[1]), DTYPE)
    assert place(smaller) == before
    assert smaller.shape == (SHAPE[0] - 1, SHAPE[1])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda memory: pickle.loads(pickle.dumps(memory))])
def test_a_copy_starts_without_memory(duplicate):
    memory = BatchMemory()
    memory.empty(SHAPE, DTYPE)
    assert duplicate(memory).nbytes == 0


def test_threads_never_share_a_block():
    memory, faults = BatchMemory(), []

    def work(number):
        for _ in range(300):
            array = memory.empty(SHAPE, DTYPE)
            array.fill(number)
            if not (array == number).all():
                faults.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults

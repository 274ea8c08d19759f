"""Work is split without overlap, errors come back, and a forked child gets a pool of its own."""

import threading

import pytest

from sb3_extra_buffers.codecs.batch import automatic_threads, run_split
from sb3_extra_buffers.testing.processes import in_forked_child


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
@pytest.mark.parametrize("threads", [0, 1, 2, 3, 8])
def test_every_item_is_worked_on_exactly_once(count, threads):
    seen = [0] * count

    def work(part):
        for index in range(count)[part]:
            seen[index] += 1

    run_split(work, count, threads)
    assert seen == [1] * count


def test_slices_run_on_several_threads_at_once():
    barrier = threading.Barrier(3, timeout=600)
    run_split(lambda part: barrier.wait(), 3, 3)  # would time out if one waited for another


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_an_error_is_raised_after_all_slices_have_ended(failing):
    ended = []

    def work(part):
        if part.start == failing:
            raise RuntimeError(f"slice {part.start}")
        ended.append(part.start)

    with pytest.raises(RuntimeError, match=f"slice {failing}"):
        run_split(work, 3, 3)
    assert sorted(ended) == sorted({0, 1, 2} - {failing})


def test_a_forked_child_does_not_wait_for_the_threads_of_its_parent():
    run_split(lambda part: None, 4, 4)

    def in_child():
        done = []
        run_split(lambda part: done.append(part), 4, 4)
        assert len(done) == 4

    in_forked_child(in_child)


def test_automatic_threads_are_few_and_at_least_one():
    assert 1 <= automatic_threads() <= 4


def test_work_that_splits_its_own_work_does_not_wait_for_itself():
    done = []
    run_split(lambda part: run_split(lambda inner: done.append(inner), 4, 4), 4, 4)
    assert len(done) == 4 + 3  # the calling thread splits once more, the workers do not

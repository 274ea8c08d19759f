"""The thread that reads ahead: when it uses the stores, and when it starts and ends."""

import gc
import os
import pickle
import threading
import weakref

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedHerReplayBuffer,
    CompressedMaskableDictRolloutBuffer,
    CompressedMaskableRolloutBuffer,
    CompressedNStepReplayBuffer,
    CompressedRecurrentDictRolloutBuffer,
    CompressedRecurrentRolloutBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
    prefetch,
)
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.stores import resolve
from sb3_extra_buffers.testing.processes import in_forked_child, in_fresh_process

ROWS, N_ENVS = 40, 2
IMAGE = spaces.Box(0, 255, (4, 32, 32), np.uint8)
DICT = spaces.Dict(image=IMAGE, vec=spaces.Box(-9, 9, (3,), np.float32))
GOALS = spaces.Dict(dict.fromkeys(["observation", "achieved_goal", "desired_goal"], DICT["vec"]))
ACTIONS = spaces.Discrete(5)
WAIT = 600
each_layout = pytest.mark.parametrize("layout", ["cells", "frames"])
each_kind = pytest.mark.parametrize("kind", [CompressedReplayBuffer, CompressedRolloutBuffer])


def image(number):
    """Noise: it takes time to decode, and every number gives another image."""
    return np.random.default_rng(number).integers(0, 256, (N_ENVS, *IMAGE.shape), np.uint8)


def fill(buffer, steps=ROWS, first=0):
    for number in range(first, first + steps):
        if isinstance(buffer, CompressedRolloutBuffer):
            step = np.zeros((N_ENVS, 1)), np.full(N_ENVS, number), np.zeros(N_ENVS), th.zeros(N_ENVS), th.zeros(N_ENVS)
            buffer.add(image(number), *step)
        else:
            step = np.zeros((N_ENVS, 1)), np.full(N_ENVS, number), np.zeros(N_ENVS), [{}] * N_ENVS
            buffer.add(image(number), image(number + 1), *step)
    return buffer


def make(kind=CompressedReplayBuffer, **storage):
    size = ROWS if kind is CompressedRolloutBuffer else ROWS * N_ENVS
    storage = {"compression_method": "gzip/1", "layout": "cells", **storage}
    return fill(kind(size, IMAGE, ACTIONS, "cpu", n_envs=N_ENVS, prefetch=True, **storage))


def read_some(buffer):
    """A batch, and what reads the next one, which must be kept."""
    if isinstance(buffer, CompressedRolloutBuffer):
        passing = buffer.get(16)
        return next(passing), passing
    return buffer.sample(16), None


def threads():
    return {thread for thread in threading.enumerate() if thread.name.startswith(prefetch._NAME)}


@each_layout
def test_observations_can_be_read_at_any_time(layout):
    buffer = make(layout=layout)
    rng = np.random.default_rng(0)
    np.random.seed(0)
    for round_ in range(60):
        number = ROWS + round_
        rows = np.arange(number - ROWS, number)
        batch = buffer.sample(64)  # the next one is under way from here on
        row = int(rng.choice(rows))
        assert (buffer.observations[row % ROWS] == image(row)).all()
        assert (buffer.next_observations[[row % ROWS, (row - 1) % ROWS]][0] == image(row + 1)).all()
        assert (buffer.reconstruct_obs(row % ROWS, 1) == image(row)[1]).all()
        assert (buffer.reconstruct_nextobs(row % ROWS, 1) == image(row + 1)[1]).all()
        assert buffer.memory_report().transitions == ROWS * N_ENVS
        for seen in (0, 17, 63):
            drawn = int(batch.rewards[seen])
            assert any((batch.observations[seen].numpy() == part).all() for part in image(drawn))
            assert any((batch.next_observations[seen].numpy() == part).all() for part in image(drawn + 1))
        fill(buffer, 1, number)


@each_kind
@each_layout
def test_two_threads_are_never_in_the_stores_at_once(kind, layout, monkeypatch):
    buffer = make(kind, layout=layout)
    inner = resolve(buffer._storage.observations[""].store._built)
    inside, seen = [], set()

    def watch(name):
        original = getattr(inner, name)

        def watched(*args):
            inside.append(threading.current_thread())
            assert len(set(inside)) == 1, f"{name} while {inside[0].name} was there"
            seen.add((name, inside[-1] is threading.main_thread()))
            try:
                return original(*args)
            finally:
                inside.pop()

        monkeypatch.setattr(inner, name, watched)

    for name in ("read", "write", "stored_nbytes", "clear"):
        watch(name)
    for number in range(20):
        batch, passing = read_some(buffer)
        assert (buffer.observations[0] == buffer.observations[0]).all()
        buffer.memory_report()
        if kind is CompressedReplayBuffer:
            fill(buffer, 1, number)
        elif number % 5 == 4:
            buffer.reset()
            fill(buffer)
        del batch, passing
    reading = {name for name, in_main in seen if not in_main}
    assert reading == {"read"}
    assert ("stored_nbytes", True) in seen


def test_adding_waits_for_the_batch_that_is_being_read(monkeypatch):
    buffer = make()
    worker, reading, asked, order = buffer._storage.worker, threading.Event(), threading.Event(), []
    read, wait = buffer._storage.read_both, worker.wait

    def slow(*given):
        if threading.current_thread() is not threading.main_thread():
            reading.set()
            assert asked.wait(WAIT)
        found = read(*given)
        order.append("read")
        return found

    def watched():
        if threading.current_thread() is adding and reading.is_set():
            asked.set()
        wait()

    def add():
        fill(buffer, 1, ROWS)
        order.append("added")

    adding = threading.Thread(target=add)
    monkeypatch.setattr(buffer._storage, "read_both", slow)
    monkeypatch.setattr(worker, "wait", watched)
    buffer.sample(8)
    assert reading.wait(WAIT)
    adding.start()
    adding.join(WAIT)
    assert order == ["read", "read", "added"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@each_layout
def test_a_forked_child_goes_on_like_its_parent(layout, same):
    def go_on(buffer):
        np.random.set_state(random)
        found = [buffer.sample(64) for _ in range(3)]
        fill(buffer, 1, ROWS)
        return found + [buffer.sample(64) for _ in range(3)]

    def check():
        same(go_on(buffer), expected)

    twin, buffer = make(layout=layout), make(layout=layout)
    np.random.seed(1)
    twin.sample(64)
    random = np.random.get_state()
    expected = go_on(twin)
    np.random.seed(1)
    buffer.sample(64)  # the next one is under way when the child is made
    in_forked_child(check)
    check()


@each_kind
def test_there_is_no_thread_before_there_is_something_to_read_ahead(kind):
    others = threads()
    buffer = make(kind)
    pickle.loads(pickle.dumps(buffer))
    assert threads() <= others
    held = read_some(buffer)
    assert len(threads() - others) == 1
    for _ in range(5):
        held = read_some(buffer)
    assert len(threads() - others) == 1
    del held


@each_kind
def test_the_thread_ends_with_the_buffer(kind):
    others = threads()
    buffer = make(kind)
    held = read_some(buffer)
    (thread,) = threads() - others
    gone = weakref.ref(buffer)
    del buffer, held
    gc.collect()
    assert gone() is None
    thread.join(WAIT)
    assert not thread.is_alive()


def leave_in_the_middle():
    np.random.seed(0)
    buffer = make()
    return int(buffer.sample(200).observations.sum()), buffer


def test_a_process_can_end_while_a_batch_is_read():
    expected = leave_in_the_middle()
    found = in_fresh_process(leave_in_the_middle)  # what it returns travels, the batch that waits included
    assert found[0] == expected[0]
    assert (found[1].sample(200).observations == expected[1].sample(200).observations).all()


def test_memory_of_batches_is_used_again():
    buffer = make()
    batch = None
    for _ in range(12):
        batch = buffer.sample(64)  # the one before is still held
    nbytes = 64 * 4 * 32 * 32
    assert 2 * 2 * nbytes <= buffer.memory_report().batches <= 2 * 3 * nbytes
    assert batch.observations.shape == (64, 4, 32, 32)


@pytest.mark.parametrize("value", [1, 0, None, "yes", np.True_])
@each_kind
def test_prefetch_is_yes_or_no(kind, value):
    with pytest.raises(ParameterError, match=r"prefetch=.* is not allowed; it must be True or False"):
        kind(10, IMAGE, ACTIONS, prefetch=value)


@pytest.mark.parametrize(
    ("kind", "space", "arguments", "reason"),
    [
        (CompressedNStepReplayBuffer, IMAGE, {"n_steps": 3}, "n-step returns"),
        (CompressedHerReplayBuffer, GOALS, {"env": None}, "goals are replaced"),
        (CompressedRecurrentRolloutBuffer, IMAGE, {"hidden_state_shape": (10, 1, 1, 4)}, "sequences"),
        (CompressedRecurrentDictRolloutBuffer, DICT, {"hidden_state_shape": (10, 1, 1, 4)}, "sequences"),
        (
            CompressedReplayBuffer,
            IMAGE,
            {"optimize_memory_usage": True, "handle_timeout_termination": False},
            "with optimize_memory_usage, and without timeouts",
        ),
    ],
)
def test_buffers_that_cannot_read_ahead_refuse_to(kind, space, arguments, reason):
    expected = f"{kind.__name__}: prefetch=True is not allowed; it must be False: {reason}.*Leave prefetch out"
    with pytest.raises(ParameterError, match=expected):
        kind(10, space, ACTIONS, prefetch=True, **arguments)


@pytest.mark.parametrize(
    ("kind", "space"),
    [
        (CompressedReplayBuffer, IMAGE),
        (CompressedDictReplayBuffer, DICT),
        (CompressedRolloutBuffer, IMAGE),
        (CompressedDictRolloutBuffer, DICT),
        (CompressedMaskableRolloutBuffer, IMAGE),
        (CompressedMaskableDictRolloutBuffer, DICT),
    ],
)
@pytest.mark.parametrize("asked", [True, False])
def test_stores_are_guarded_only_if_batches_are_read_ahead(kind, space, asked):
    buffer = kind(40, space, ACTIONS, prefetch=asked)
    storage = buffer._storage
    arrays = [*storage.observations.values(), *storage.next_observations.values()]
    for stores in (storage.stores(), [array.store for array in arrays]):
        assert {type(store).__name__ == "GuardedStore" for store in stores} == {asked}
    assert (buffer._storage.worker is not None) == asked

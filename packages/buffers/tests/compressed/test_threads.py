"""Threads that add, sample, look and copy at the same time see whole transitions and nothing else."""

import copy
import multiprocessing
import os
import pickle
import sys
import threading

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer

SIDE, ENVS, ROWS, STEPS = 20, 2, 30, 240
SCREEN = spaces.Box(0, 255, (3, SIDE, SIDE), np.uint8)
DICT = spaces.Dict(image=SCREEN, scan=spaces.Box(0, 255, (400,), np.uint8))
ACTIONS = spaces.Discrete(2)


@pytest.fixture(autouse=True)
def restless():
    """Let threads take turns as often as the interpreter can: what may be torn apart will be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


#: What both environments show at each step.
SCREENS = np.random.default_rng(0).integers(0, 256, (STEPS + 10, ENVS, 3, SIDE, SIDE), np.uint8)


def observations(space, step):
    images = SCREENS[step]
    return {"image": images, "scan": images.reshape(ENVS, -1)[:, :400]} if isinstance(space, spaces.Dict) else images


def play(buffer, first, steps):
    space = buffer.observation_space
    for step in range(first, first + steps):
        obs, following = observations(space, step), observations(space, step + 1)
        rewards = np.array([step * ENVS + env for env in range(ENVS)], np.float32)
        buffer.add(obs, following, np.full((ENVS, 1), step % 2), rewards, np.zeros(ENVS, bool), [{}] * ENVS)


def check(batch):
    """Every transition of a batch is one that was added, in all its parts."""
    steps, envs = np.divmod(batch.rewards.numpy().reshape(-1).astype(int), ENVS)
    assert np.array_equal(batch.actions.numpy().reshape(-1), steps % 2)
    for ahead, found in ((0, batch.observations), (1, batch.next_observations)):
        for part in found.values() if isinstance(found, dict) else [found]:
            rows = part.numpy().reshape(len(part), -1)
            assert np.array_equal(rows, SCREENS[steps + ahead, envs].reshape(len(part), -1)[:, : rows.shape[1]])


def together(*works):
    """Run all of this at the same time, and raise what any of it raised."""
    problems = []

    def run(work):
        try:
            work()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


@pytest.mark.parametrize("space", [SCREEN, DICT], ids=["screen", "dict"])
@pytest.mark.parametrize(
    "options",
    [
        {"layout": "frames"},
        {"layout": "frames", "prefer": "memory"},
        {"layout": "frames", "prefetch": True},
        {"layout": "cells", "compression_method": "gzip/1"},
        {"layout": "cells", "compression_method": "none"},
        {"layout": "cells", "compression_method": "rle", "heap": "ring", "heap_kwargs": {"capacity": 50_000}},
        {"layout": "frames", "heap": "mmap", "heap_kwargs": {"capacity": 80_000}},
    ],
    ids=lambda options: "-".join(map(str, options.values())) if isinstance(options, dict) else None,
)
def test_one_thread_adds_while_others_sample_look_and_copy(space, options):
    kind = CompressedDictReplayBuffer if isinstance(space, spaces.Dict) else CompressedReplayBuffer
    buffer = kind(ROWS * ENVS, space, ACTIONS, "cpu", ENVS, **options)
    play(buffer, 0, 5)
    done = threading.Event()

    def add():
        try:
            play(buffer, 5, STEPS)
        finally:
            done.set()

    def sample():
        while not done.is_set():
            check(buffer.sample(16))

    def look():
        while not done.is_set():
            assert buffer.memory_report().transitions <= ROWS * ENVS
            check(copy.deepcopy(buffer).sample(16))
            with buffer.exclusively():
                pickled = pickle.dumps(buffer)
            check(pickle.loads(pickled).sample(16))

    together(add, sample, sample, look)
    check(buffer.sample(64))
    assert buffer.rewards.max() == (STEPS + 5) * ENVS - 1


def _child(buffer):
    # In a child, threads of the parent are gone: what they were doing must not be left half done.
    check(buffer.sample(16))
    play(buffer, 5 + STEPS, 3)
    check(buffer.sample(16))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_can_be_forked_while_another_thread_adds():
    buffer = CompressedReplayBuffer(ROWS * ENVS, SCREEN, ACTIONS, "cpu", ENVS)
    play(buffer, 0, 5)
    codes = []

    def fork():
        for _ in range(5):
            child = multiprocessing.get_context("fork").Process(target=_child, args=(buffer,))
            child.start()
            child.join(600)
            codes.append(child.exitcode)

    together(lambda: play(buffer, 5, STEPS), fork)
    assert codes == [0] * 5


def test_a_buffer_is_used_again_by_the_thread_that_has_it():
    buffer = CompressedReplayBuffer(ROWS * ENVS, SCREEN, ACTIONS, "cpu", ENVS)
    with buffer.exclusively(), buffer.exclusively():
        play(buffer, 0, 5)
        check(buffer.sample(4))

"""Threads that add, sample and move at the same time see whole transitions and nothing else."""

import sys
import threading

import numpy as np
import pytest
from gpu_player import ACTIONS
from gymnasium import spaces

from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer, GpuRolloutBuffer

SCREEN = spaces.Box(0, 255, (4, 20, 20), np.uint8)
STEPS = 150


@pytest.fixture
def restless():
    """Let threads take turns as often as the interpreter can: what may be torn apart will be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def shown(number):
    return np.full((1, *SCREEN.shape), number % 200, np.uint8)


def add(buffer, step):
    buffer.add(shown(step), shown(step + 1), np.zeros(1), np.full(1, step % 200), np.zeros(1), [{}])


@pytest.mark.parametrize("room", [{}, {"heap_bytes": 1 << 18}], ids=["growing", "ring"])
@pytest.mark.parametrize("codec", ["none", "rle", "gzip"])
def test_batches_are_whole_while_another_thread_moves_the_buffer(restless, codec, room):
    ours = GpuReplayBuffer(100, SCREEN, ACTIONS, "cpu", compression_method=codec, **room)
    add(ours, 0)
    problems, done = [], threading.Event()

    def work(step):
        try:
            while not done.is_set():
                step()
        except BaseException as problem:
            problems.append(problem)

    moving = threading.Thread(target=work, args=(lambda: ours.to("cpu"),))
    moving.start()
    try:
        for step in range(1, STEPS):
            add(ours, step)
            batch = ours.sample(8)
            expected = batch.rewards[:, 0]
            assert (batch.observations.flatten(1).float() == expected[:, None]).all()
            assert (batch.next_observations.flatten(1).float() == ((expected + 1) % 200)[:, None]).all()
    finally:
        done.set()
        moving.join()
    assert not problems


def waits_for_its_turn(buffer, call):
    """Whether a call in another thread begins only when this one lets go of the buffer."""
    called = threading.Event()

    def run():
        call()
        called.set()

    thread = threading.Thread(target=run)
    with buffer.exclusively():
        thread.start()
        has_waited = not called.wait(0.1)
    thread.join()
    return has_waited and called.is_set()


def test_a_move_waits_for_its_turn():
    ours = GpuReplayBuffer(10, SCREEN, ACTIONS, "cpu")
    add(ours, 0)
    assert waits_for_its_turn(ours, lambda: ours.to("cpu"))


def test_a_look_at_an_observation_waits_for_its_turn(roll):
    replay = GpuReplayBuffer(10, SCREEN, ACTIONS, "cpu")
    add(replay, 0)
    rollout = GpuRolloutBuffer(10, SCREEN, ACTIONS, "cpu")
    roll([rollout])
    for ours in (replay, rollout):
        assert waits_for_its_turn(ours, lambda ours=ours: ours.reconstruct_obs(0))

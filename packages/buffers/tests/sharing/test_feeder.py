"""A feeder that is interrupted at any line loses no record and adds none twice."""

import sys
from contextlib import suppress
from itertools import count

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer

from sb3_extra_buffers.errors import FileDamagedError
from sb3_extra_buffers.sharing import Feeder, Ring, files, transition_record

SPACE, ACTIONS, STEPS = spaces.Box(-1, 1, (3,), np.float32), spaces.Discrete(2), 4
FILES = ("sharing/feeder.py", "sharing/files.py")


@pytest.fixture
def filled(tmp_path_factory):
    """A feeder for two rings with a few transitions each, whose rewards are their numbers."""

    def filled(size=10, damaged=None):
        folder = tmp_path_factory.mktemp("rings")
        rings = [Ring.create(folder / str(actor), transition_record(SPACE, ACTIONS), STEPS) for actor in range(2)]
        for ring in rings:
            for number in range(STEPS):
                record = np.zeros((), ring.record)
                record["reward"] = number
                ring.put(record)
        if damaged is not None:
            rings[1]._bytes[damaged, 20] ^= 1
        buffer = ReplayBuffer(2 * size, SPACE, ACTIONS, "cpu", 2)
        return rings, buffer, Feeder(buffer, rings)

    return filled


def interrupt(call, line, error):
    """Call, and raise an error at a line of the feeder or a ring, counted as they run; whether it came to that."""
    passed = 0

    def trace(frame, event, _):
        nonlocal passed
        if not frame.f_code.co_filename.replace("\\", "/").endswith(FILES):
            return None
        if event == "line":
            passed += 1
            if passed == line:
                raise error
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        with suppress(type(error), FileDamagedError):
            call()
    finally:
        sys.settrace(old)
    return passed >= line


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()], ids=repr)
@pytest.mark.parametrize("size", [10, 3])
def test_an_interrupt_at_any_line_loses_nothing_and_duplicates_nothing(filled, error, size):
    for line in count(1):
        rings, buffer, feeder = filled(size)
        interrupted = interrupt(feeder.feed, line, error)
        feeder.feed()
        assert [len(ring) for ring in rings] == [0, 0]
        expected = np.zeros(size)
        for number in range(STEPS):
            expected[number % size] = number
        assert buffer.rewards.tolist() == [[number] * 2 for number in expected], line
        assert (buffer.pos, buffer.full) == (STEPS % size, size <= STEPS), line
        if not interrupted:
            break
    assert line > 50


def test_an_interrupt_after_the_step_was_stored_does_not_add_it_again(filled):
    rings, buffer, feeder = filled()
    add = buffer.add

    def add_and_stop(*step):
        add(*step)
        raise KeyboardInterrupt

    buffer.add = add_and_stop
    with pytest.raises(KeyboardInterrupt):
        feeder.feed()
    assert [len(ring) for ring in rings] == [STEPS - 1] * 2
    del buffer.add
    assert feeder.feed() == STEPS - 1
    assert buffer.rewards[:STEPS, 0].tolist() == list(range(STEPS))


def test_an_interrupt_while_a_damaged_record_is_left_out_costs_no_other_record(filled, monkeypatch):
    monkeypatch.setattr(files, "_RECORD_ATTEMPTS", 2)
    for line in count(1):
        rings, buffer, feeder = filled(damaged=0)
        interrupted = interrupt(feeder.feed, line, KeyboardInterrupt())
        while len(rings[1]):
            with suppress(FileDamagedError):  # if the interrupt came first
                feeder.feed()
        assert buffer.rewards[: STEPS - 1].tolist() == [[number, number + 1] for number in range(STEPS - 1)], line
        assert [len(ring) for ring in rings] == [1, 0]
        if not interrupted:
            break

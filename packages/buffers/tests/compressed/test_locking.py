"""A fork waits for all buffers, and a child can use everything that it inherits."""

import copy
import os
import signal
import threading

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers.compressed import CompressedReplayBuffer, locking

SCREEN, ACTIONS = spaces.Box(0, 255, (4, 20, 20), np.uint8), spaces.Discrete(2)
#: Seconds after which a child counts as hung. It needs a fraction of one.
PATIENCE = 120

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


def new(**options):
    return CompressedReplayBuffer(20, SCREEN, ACTIONS, "cpu", **options)


def add(buffer, count=1):
    for number in range(count):
        screen = np.full((1, *SCREEN.shape), number, np.uint8)
        buffer.add(screen, screen, np.zeros((1, 1)), np.zeros(1), np.zeros(1), [{}])


def ends_well(call):
    """Whether a forked child comes to the end of a call."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(PATIENCE)
            call()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


@pytest.fixture
def beside():
    """Run a function again and again in a thread, until the test ends."""
    stopped, threads = threading.Event(), []

    def beside(call):
        def repeat():
            while not stopped.is_set():
                call()

        threads.append(threading.Thread(target=repeat))
        threads[-1].start()
        return threads[-1]

    yield beside
    stopped.set()
    for thread in threads:
        thread.join()


def test_a_child_can_draw_numbers_while_another_thread_of_its_parent_does(beside):
    buffer = new()
    add(buffer, 5)
    beside(lambda: np.random.standard_normal(1_000_000))  # nearly always at work, without the interpreter's lock
    assert all(ends_well(lambda: buffer.sample(4)) for _ in range(5))


def test_children_find_whole_buffers_while_other_threads_create_some(beside):
    created = []

    def create():
        buffer = new(prefetch=len(created) % 2 > 0)
        created.append(buffer)
        for _ in range(3):
            add(buffer, 5)
            buffer.sample(4)

    def use():
        for buffer in created[-3:]:
            add(buffer)
            buffer.sample(4)

    threads = [beside(create) for _ in range(3)]
    assert all(ends_well(use) for _ in range(20))
    while len(created) <= 3:  # on a busy machine, it takes more forks
        assert ends_well(use)
        assert all(thread.is_alive() for thread in threads)


def test_no_buffer_is_made_during_a_fork():
    made = threading.Thread(target=new)
    locking._hold_all()
    try:
        made.start()
        made.join(0.2)
        assert made.is_alive()
    finally:
        locking._release_all()
    made.join()


@pytest.mark.parametrize("how", ["constructor", "copy", "load"])
def test_a_fork_waits_for_a_buffer_that_is_being_made(how, tmp_path):
    started, go, made = threading.Event(), threading.Event(), []

    class Slow(CompressedReplayBuffer):
        def _new_storage(self, *args):
            if threading.current_thread() is not threading.main_thread():
                started.set()
                go.wait()  # like an import or a compilation, whose locks a child could never get
            return super()._new_storage(*args)

    first = Slow(20, SCREEN, ACTIONS, "cpu")
    first.save(tmp_path)
    makers = {
        "constructor": lambda: Slow(20, SCREEN, ACTIONS, "cpu"),
        "copy": lambda: copy.deepcopy(first),
        "load": lambda: Slow.load(tmp_path, "cpu"),
    }
    thread = threading.Thread(target=lambda: made.append(makers[how]()._storage))
    thread.start()
    started.wait()
    threading.Timer(0.1, go.set).start()
    locking._hold_all()
    try:
        assert go.is_set()
    finally:
        locking._release_all()
    thread.join()
    assert made


def test_a_buffer_that_is_made_while_a_fork_waits_is_held_too():
    first, ready, go = new(), threading.Event(), threading.Event()
    twins = []

    def hold_and_create():
        with first.exclusively():
            ready.set()
            go.wait()
            twins.append(new())  # a deadlock, if the fork kept others from creating buffers while it waits

    thread = threading.Thread(target=hold_and_create)
    thread.start()
    ready.wait()
    threading.Timer(0.1, go.set).start()
    locking._hold_all()
    try:
        thread.join()
        assert twins[0]._storage.lock.lock._is_owned()
    finally:
        locking._release_all()
    assert not twins[0]._storage.lock.lock._is_owned()


def test_a_fork_gives_way_to_a_thread_that_needs_two_buffers(monkeypatch):
    monkeypatch.setattr(locking, "_PATIENCE", 0.05)
    buffers, ready, go = [new() for _ in range(4)], threading.Event(), threading.Event()

    def use_all():
        with buffers[0].exclusively():
            ready.set()
            go.wait()
            for buffer in buffers:
                add(buffer)

    thread = threading.Thread(target=use_all)
    thread.start()
    ready.wait()
    threading.Timer(0.1, go.set).start()
    assert ends_well(lambda: [add(buffer) for buffer in buffers])
    thread.join()
    assert [buffer.pos for buffer in buffers] == [1] * 4

"""Uploads by several threads, and streams that share a heap.

The classes are the real ones, and so is the way to them. Streams are those of ``torch.cpu``, which note who waits for
whom; on a GPU, none of this has run.
"""

import pickle
import sys
import threading

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer, SharedRawHeap, devices
from sb3_extra_buffers.gpu_buffers.memory import transfer
from sb3_extra_buffers.gpu_buffers.memory.transfer import StreamOrder, Uploader

CPU = th.device("cpu")
SPACE, ACTIONS = spaces.Box(0, 255, (4, 12, 12), np.uint8), spaces.Discrete(2)


class Stream(th.cpu.Stream):
    """A stream that notes what it waits for."""

    def __init__(self, name, waits):
        super().__init__()
        self.name, self.waits = name, waits

    def wait_stream(self, stream):
        self.waits.append((self.name, stream.name))


class Watch(th.cpu.Event):
    """The event of a copy from staging memory, which must not change before somebody has waited for the event."""

    def __init__(self, staging):
        self.staging, self.copied = staging, None

    def record(self, stream=None):
        self.copied = self.staging.clone()

    def synchronize(self):
        assert self.copied is None or th.equal(self.copied, self.staging)


@pytest.fixture
def pinned(monkeypatch):
    """The CPU as a device with streams. It has neither pinned memory nor a stream that frees memory."""
    uses = []

    def make(nbytes):
        staging = th.empty(1 << (nbytes - 1).bit_length(), dtype=th.uint8)
        return staging, Watch(staging)

    monkeypatch.setattr(transfer, "has_streams", lambda device: True)
    monkeypatch.setattr(transfer, "_current_stream", th.cpu.current_stream)
    monkeypatch.setattr(Uploader, "_make", staticmethod(make))
    monkeypatch.setattr(th.Tensor, "record_stream", lambda tensor, stream: uses.append((tensor, stream)))
    monkeypatch.setattr(devices, "is_host", lambda device: False)
    return uses


@pytest.fixture
def streams():
    """Two streams, and who has waited for whom."""
    waits = []
    return Stream("main", waits), Stream("side", waits), waits


def test_threads_share_an_uploader(pinned):
    uploader, problems = Uploader(CPU), []

    def work(seed):
        random = np.random.default_rng(seed)
        try:
            for _ in range(300):
                data = random.integers(256, size=random.integers(1, 3000), dtype=np.uint8)
                target = th.zeros(len(data), dtype=th.uint8)
                uploader.upload(data, target)
                assert target.numpy().tobytes() == data.tobytes()
        except BaseException as problem:
            problems.append(problem)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert problems == []
    assert len(uploader._slots) == 32


def test_an_upload_that_fails_leaves_the_next_one_possible(pinned, monkeypatch):
    uploader = Uploader(CPU)
    target = th.zeros(3, dtype=th.uint8)

    def fail(nbytes):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Uploader, "_make", staticmethod(fail))
        with pytest.raises(MemoryError):
            uploader.upload(b"abc", target)
    uploader.upload(b"abc", target)
    assert bytes(target.tolist()) == b"abc"


def add(buffer, first, steps):
    for step in range(first, first + steps):
        obs, following = (np.full((1, 4, 12, 12), number, np.uint8) for number in (step, step + 1))
        buffer.add(obs, following, np.zeros(1), np.full(1, step), np.zeros(1), [{}])


OPTIONS = [
    {"compression_method": "none"},
    {"compression_method": "rle"},
    {"compression_method": "gzip"},
    {"compression_method": "rle", "heap_bytes": 1 << 18},
    {"compression_method": "auto", "layout": "frames", "decode_on": "device"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_sample_follows_what_a_side_stream_has_added_and_the_next_add_follows_the_sample(pinned, streams, options):
    main, side, waits = streams
    with th.cpu.stream(main):
        ours = GpuReplayBuffer(100, SPACE, ACTIONS, "cpu", **options)
        add(ours, 0, 40)
    assert waits == []
    with th.cpu.stream(side):
        add(ours, 40, 40)
    assert waits == [("side", "main")]
    with th.cpu.stream(main):
        batch = ours.sample(50)
    assert waits[:2] == [("side", "main"), ("main", "side")]
    assert (batch.observations.flatten(1).float() == batch.rewards).all()
    seen = len(waits)
    with th.cpu.stream(main):
        ours.sample(50)  # nothing was written since
    assert len(waits) == seen
    with th.cpu.stream(side):
        add(ours, 80, 40)
    assert ("side", "main") in waits[seen:]


def test_a_batch_that_a_worker_has_read_in_another_stream_is_waited_for_and_kept(pinned, streams, monkeypatch):
    main, side, waits = streams
    here = threading.get_ident()
    monkeypatch.setattr(transfer, "_current_stream", lambda device: side if threading.get_ident() == here else main)
    ours = GpuReplayBuffer(100, SPACE, ACTIONS, "cpu", compression_method="rle", decode_on="device", prefetch=True)
    add(ours, 0, 80)
    for _ in range(3):
        ours.sample(20)
        ours._storage.worker.wait()
    waits.clear()
    pinned.clear()
    batch = ours.sample(20)
    assert ("side", "main") in waits
    kept = {tensor.untyped_storage().data_ptr() for tensor, stream in pinned if stream is side}
    assert batch.observations.untyped_storage().data_ptr() in kept


def test_memory_that_several_streams_use_is_known_to_the_allocator(pinned, streams):
    main, side, _ = streams
    order, first, second = StreamOrder(CPU), th.zeros(1), th.zeros(2)
    order.own(first)
    with th.cpu.stream(main):
        order.write()
    with th.cpu.stream(side):
        order.read()
        order.read()
    order.own(second)
    found = [(tensor.numel(), stream.name) for tensor, stream in pinned]
    assert sorted(found) == [(1, "main"), (1, "side"), (2, "main"), (2, "side")]
    del first, second
    pinned.clear()  # the list itself holds them
    with th.cpu.stream(Stream("third", [])):
        order.read()
    assert pinned == []


def test_a_writer_waits_for_all_readers_and_readers_not_for_each_other(pinned):
    waits = []
    one, two, three = (Stream(name, waits) for name in ("one", "two", "three"))
    order = StreamOrder(CPU)
    for stream, act in ((one, order.write), (two, order.read), (three, order.read), (two, order.read)):
        with th.cpu.stream(stream):
            act()
    assert waits == [("two", "one"), ("three", "one")]
    waits.clear()
    with th.cpu.stream(two):
        order.write()
    assert sorted(waits) == [("two", "one"), ("two", "three")]


def test_devices_without_streams_are_not_asked_for_one(monkeypatch):
    monkeypatch.setattr(transfer, "_current_stream", lambda device: pytest.fail("there is none"))
    heap = SharedRawHeap(4, 1 << 10, "cpu")
    heap.reserve(np.array([0]), 3)[:] = 7
    heap.commit(np.array([3]))
    assert heap.order.take(heap.slices(*heap.locate(np.array([0])))[0]).tolist() == [7, 7, 7]


def test_copies_begin_anew():
    for made in (Uploader(CPU), StreamOrder(CPU)):
        assert isinstance(pickle.loads(pickle.dumps(made)), type(made))

"""The paths of a device that the host does not see, on the CPU: it is treated as if it were one."""

import numpy as np
import pytest
import torch as th
from gpu_player import ACTIONS, SPACES, expect_equal
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer

from sb3_extra_buffers import codecs, heaps
from sb3_extra_buffers.gpu_buffers import GpuDictReplayBuffer, GpuReplayBuffer, devices
from sb3_extra_buffers.gpu_buffers.kernels.launch import Status
from sb3_extra_buffers.gpu_buffers.memory.transfer import Uploader

SCREEN = spaces.Box(0, 255, (4, 30, 30), np.uint8)


@pytest.fixture
def copies(monkeypatch):
    """The CPU is elsewhere; what is brought from there is counted."""
    made = []

    def on_host(tensor):
        made.append(tensor.numel())
        return tensor.clone()

    monkeypatch.setattr(devices, "is_host", lambda device: False)
    monkeypatch.setattr(devices, "on_host", on_host)
    return made


def screens(count, seed=0):
    """Stacks of frames in which little changes, and now and then everything."""
    random = np.random.default_rng(seed)
    frame, shown = random.integers(0, 9, (30, 30), np.uint8), []
    for step in range(count + 4):
        frame = frame.copy() if step % 40 else random.integers(0, 9, (30, 30), np.uint8)
        frame[random.integers(30), random.integers(30)] += 1
        shown.append(frame)
    return [np.stack(shown[step : step + 4])[np.newaxis] for step in range(count + 1)]


def fill(buffers, steps, seed=0):
    shown = screens(steps, seed)
    for step in range(steps):
        for buffer in buffers:
            buffer.add(shown[step], shown[step + 1], np.zeros(1), np.zeros(1), np.zeros(1), [{}])


METHODS = [{"compression_method": name} for name in codecs.names()]
METHODS += [
    {"compression_method": "auto", "layout": "frames", "prefer": prefer, "decode_on": decode_on}
    for prefer in ("speed", "memory")
    for decode_on in ("host", "auto")
]


@pytest.mark.parametrize("options", METHODS, ids=str)
@pytest.mark.parametrize("room", [{}, {"heap_bytes": 1 << 21}], ids=["growing", "ring"])
@pytest.mark.parametrize("threads", [1, 3])
def test_batches_are_those_of_stable_baselines3(copies, options, room, threads, same_batches):
    ours = GpuReplayBuffer(300, SCREEN, ACTIONS, "cpu", threads=threads, **options, **room)
    theirs = ReplayBuffer(300, SCREEN, ACTIONS, "cpu")
    for steps in (1, 30, 500):  # the last ones wrap around, and batches are of complete chunks
        fill([ours, theirs], steps, seed=steps)
        for size in (2, 60, 250):
            same_batches(ours, theirs, size=size)


@pytest.mark.parametrize("name", codecs.names())
@pytest.mark.parametrize("room", [{}, {"heap_bytes": 1 << 21}], ids=["growing", "ring"])
def test_a_batch_is_brought_in_one_copy(copies, name, room):
    ours = GpuReplayBuffer(300, SCREEN, ACTIONS, "cpu", compression_method=name, decode_on="host", **room)
    fill([ours], 200)
    fill([ours], 150, seed=1)  # another episode: what the last one led to stands alone
    copies.clear()
    ours.sample(250)
    assert len(copies) == 1


def test_each_key_is_brought_in_one_copy(copies):
    space = spaces.Dict({"left": SCREEN, "right": SCREEN})
    codec = {"left": "gzip", "right": "rle"}
    ours = GpuDictReplayBuffer(100, space, ACTIONS, "cpu", compression_method=codec, decode_on="host")
    shown = screens(90)
    for step in range(90):
        pair = [{"left": shown[step + then], "right": shown[step + then]} for then in (0, 1)]
        ours.add(*pair, np.zeros(1), np.zeros(1), np.zeros(1), [{}])
    copies.clear()
    ours.sample(64)
    assert len(copies) == 2


@pytest.mark.parametrize("decode_on", ["host", "auto"])
@pytest.mark.parametrize("prefer", ["speed", "memory"])
def test_chunks_are_brought_in_one_copy_for_plain_ones_and_one_for_compressed_ones(copies, prefer, decode_on):
    """Without kernels, the automatic choice is the host, too: plain torch would wait several times."""
    options = {"compression_method": "auto", "layout": "frames", "prefer": prefer, "decode_on": decode_on}
    ours = GpuReplayBuffer(300, SCREEN, ACTIONS, "cpu", **options)
    fill([ours], 300)
    copies.clear()
    ours.sample(200)
    assert 1 <= len(copies) <= 2


def test_sampled_moved_and_sampled_again(same_batches):
    for options in ({}, {"heap_bytes": 1 << 21}):
        ours = GpuReplayBuffer(300, SCREEN, ACTIONS, "cpu", compression_method="auto", layout="frames", **options)
        theirs = ReplayBuffer(300, SCREEN, ACTIONS, "cpu")
        fill([ours, theirs], 250)
        same_batches(ours, theirs, size=200)  # where chunks are is remembered
        ours.to("cpu")
        spoil = [np.full(1 << 16, 7, np.uint8) for _ in range(50)]
        same_batches(ours, theirs, size=200)
        fill([ours, theirs], 250, seed=5)
        same_batches(ours, theirs, size=200)
        if options:
            ours.shared_heap.compact()
            same_batches(ours, theirs, size=200)
        del spoil


def test_two_images_of_a_dictionary_as_frames(same_batches):
    space = spaces.Dict({"left": SCREEN, "right": SCREEN})
    options = {"compression_method": "auto", "layout": "frames", "decode_on": "device"}
    ours = GpuDictReplayBuffer(200, space, ACTIONS, "cpu", **options)
    theirs = DictReplayBuffer(200, space, ACTIONS, "cpu")
    shown = [screens(150, seed) for seed in (1, 2)]
    for step in range(150):
        pair = [dict(zip(("left", "right"), (part[step + then] for part in shown))) for then in (0, 1)]
        for buffer in (ours, theirs):
            buffer.add(*pair, np.zeros(1), np.zeros(1), np.zeros(1), [{}])
    same_batches(ours, theirs, size=120)
    assert set(ours._storage.reader._frames._reference_frames)  # those of both keys are there


def test_a_move_for_which_there_is_no_room_changes_nothing(play, same_batches, monkeypatch):
    ours = GpuReplayBuffer(40, SPACES["image"], ACTIONS, "cpu", 2, compression_method="rle")
    theirs = ReplayBuffer(40, SPACES["image"], ACTIONS, "cpu", 2)
    play([ours, theirs], 30)

    def refuse(*_):
        raise heaps_full()

    from sb3_extra_buffers.errors import HeapFullError

    def heaps_full():
        return HeapFullError("device", 1, 0)

    with monkeypatch.context() as patch:
        patch.setattr(type(ours.shared_heap), "_new_block", refuse)
        with pytest.raises(HeapFullError):
            ours.to("cpu")
    same_batches(ours, theirs)


@pytest.mark.parametrize("nbytes", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_uploads_of_any_size(nbytes, kind):
    data = np.random.default_rng(0).integers(256, size=nbytes, dtype=np.uint8).tobytes()
    target = th.zeros(nbytes, dtype=th.uint8)
    Uploader(th.device("cpu")).upload(kind(data), target)
    assert target.numpy().tobytes() == data


def test_everything_in_parts_is_everything(monkeypatch):
    from sb3_extra_buffers.gpu_buffers.memory import payloads

    monkeypatch.setattr(payloads, "_MAX_GATHERED", 100)
    heap = heaps.create("device", 40, device="cpu")
    stored = [bytes([cell]) * (1 + 7 * cell) for cell in range(40)]
    for cell, payload in enumerate(stored):
        heap.reserve(np.array([cell]), len(payload))[:] = np.frombuffer(payload, np.uint8)
        heap.commit(np.array([len(payload)]))
    assert heap._join(*heap.locate(np.arange(40))) == b"".join(stored)
    assert heap._join(*heap.locate(np.arange(0))) == b""


class Later:
    """An event that comes when it is told to."""

    def __init__(self):
        self.came = False

    def query(self):
        return self.came

    def synchronize(self):
        self.came = True


def test_damage_is_told_for_the_launch_that_met_it():
    from sb3_extra_buffers.errors import PayloadError

    status, events = Status("rle", th.device("cpu")), []
    status._is_awaited = False

    def event():
        events.append(Later())
        return events[-1]

    status._event = event
    for launch in range(6):
        with status.watching(np.arange(100 * launch, 100 * launch + 50)) as number:
            number.fill_(8 if launch == 2 else 0)
    for first in events[:3]:
        first.came = True
    with pytest.raises(PayloadError) as caught, status.watching(np.arange(3)):
        pass
    assert (caught.value.index, caught.value.payload_nbytes) == (7, 207)
    status.check()  # the others found nothing
    for _ in range(30):  # more than may be under way
        with status.watching(np.arange(3)):
            pass


def test_only_the_oldest_launch_is_waited_for():
    status, events = Status("rle", th.device("cpu")), []
    status._is_awaited = False
    status._event = lambda: events.append(Later()) or events[-1]
    for _ in range(11):
        with status.watching(np.arange(3)):
            pass
    assert [event.came for event in events] == [True] * 3 + [False] * 8


def test_expectations_can_fail(play):
    ours = GpuReplayBuffer(40, SPACES["image"], ACTIONS, "cpu", 2)
    play([ours], 30)
    np.random.seed(0)
    first = ours.sample(5)
    with pytest.raises(AssertionError):
        expect_equal(ours.sample(5), first)

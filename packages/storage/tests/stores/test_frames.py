"""``FrameStore``: reads what was written, in whatever order, and stores frames that are alike once."""

import copy
import pickle

import numpy as np
import pytest

from sb3_extra_buffers import frames, heaps
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.errors import HeapFullError, HeapStateError, ParameterError
from sb3_extra_buffers.frames import FrameGeometry, Streams
from sb3_extra_buffers.heaps import TableHeap
from sb3_extra_buffers.stores import PREFERENCES, FrameRequest, Place, StoreRequest, build_stores, preference
from sb3_extra_buffers.stores.chunks import ChunkStore
from sb3_extra_buffers.stores.frames import FrameStore, slots_for

GEOMETRY = FrameGeometry(4, 1, 400)


@pytest.fixture(autouse=True, params=frames.registry.names())
def kernels(request, monkeypatch):
    """Run every test with all installed kernels."""
    made = frames.create(request.param)
    monkeypatch.setattr(frames, "create", lambda: made)
    return made


def make(cells, streams=1, planes=1, heap="memory", codec=None, fallback=None, slots=None, geometry=GEOMETRY, **room):
    kernels = frames.create()
    slots = slots or slots_for(geometry, 16, streams, planes * cells)
    own = heaps.create(heap, slots, **room)
    chunks = ChunkStore(kernels, codec, fallback, own, 0, slots, streams, geometry.frame_nbytes)
    store = FrameStore(Streams(geometry, 16, streams, cells, slots, planes), chunks, kernels, cells)
    store.heap = own
    return store


def scene(steps, seed=0, nbytes=400):
    """Frames in which little changes."""
    rng = np.random.default_rng(seed)
    frame = np.repeat(rng.integers(1, 9, nbytes // 8), 8).astype(np.uint8)
    found = []
    for _ in range(steps):
        frame = frame.copy()
        frame[rng.integers(0, nbytes, 4)] ^= 1
        found.append(frame)
    return found


def stacks(shown, depth=4):
    return [np.concatenate(shown[i : i + depth]) for i in range(len(shown) - depth + 1)]


def read(store, cells, plane=0):
    out = np.full((len(cells), store.row_nbytes), 99, np.uint8)
    store.read(np.asarray(cells), *((None, out) if plane else (out, None)))
    return out


def test_cells_that_were_never_written_are_zero():
    store = make(10)
    assert not read(store, range(10)).any()


def test_each_frame_of_a_stack_is_stored_once():
    store, rows = make(1000), stacks(scene(1003))
    for cell, row in enumerate(rows):
        store.write(np.array([cell]), row[np.newaxis])
    np.testing.assert_array_equal(read(store, range(1000)), rows)
    assert store.streams.total[0] == 1003
    assert store.stored_nbytes() < 1000 * 60  # of 1600 each


def test_a_reset_with_zeros_stores_no_zeros():
    store, shown = make(100), scene(100)
    blank = np.zeros(400, np.uint8)
    for cell in range(100):
        own = shown[cell // 5 * 5 : cell + 1][-4:]  # episodes of five steps
        store.write(np.array([cell]), np.concatenate([*[blank] * (4 - len(own)), *own])[np.newaxis])
    assert store.streams.total[0] == 100


def test_cells_written_in_any_order_are_read_back_although_chunks_are_few():
    store, rng = make(40, streams=2, planes=2), np.random.default_rng(0)
    truth = np.zeros((2, 40, store.row_nbytes), np.uint8)
    for number in range(3000):
        plane, cells = number % 2, rng.permutation(40)[: int(rng.integers(1, 5))]
        rows = rng.integers(0, 256, (len(cells), store.row_nbytes)).astype(np.uint8)
        store.write(cells, *((None, rows) if plane else (rows, None)))
        truth[plane, cells] = rows
        if number % 50 == 0:
            for side in (0, 1):
                np.testing.assert_array_equal(read(store, range(40), side), truth[side])
    assert store.streams.free_slots >= 0


def test_chunks_without_observations_are_freed():
    store, rows = make(32), stacks(scene(5003))
    for number, row in enumerate(rows):
        store.write(np.array([number % 32]), row[np.newaxis])
    assert store.streams.numbers[2] < 12
    assert store.heap.live < 5000


@pytest.mark.parametrize("codec", [None, CodecSpec("gzip", {"level": 6}), CodecSpec("rle")])
def test_chunks_are_read_back_with_every_codec(codec):
    store, rows = make(300, codec=codec), stacks(scene(303))
    for cell, row in enumerate(rows):
        store.write(np.array([cell]), row[np.newaxis])
    np.testing.assert_array_equal(read(store, np.arange(300)[::-1]), rows[::-1])


def test_a_codec_makes_chunks_smaller():
    sizes = []
    for codec in (None, CodecSpec("gzip", {"level": 6})):
        store = make(500, codec=codec)
        for cell, row in enumerate(stacks(scene(503))):
            store.write(np.array([cell]), row[np.newaxis])
        sizes.append(store.stored_nbytes())
    assert sizes[1] < 0.9 * sizes[0]


def test_a_full_ring_evicts_the_oldest_and_reading_them_is_an_error():
    store = make(400, heap="ring", capacity=4000)
    for cell, row in enumerate(stacks(scene(403))):
        store.write(np.array([cell]), row[np.newaxis])
    held = store.holds(np.arange(400))
    assert not held[0]
    assert held[-1]
    assert (np.diff(held.astype(int)) >= 0).all()
    with pytest.raises(HeapStateError, match="a chunk of its frames was evicted"):
        read(store, [0])
    np.testing.assert_array_equal(read(store, np.flatnonzero(held)), np.array(stacks(scene(403)))[held])


def test_a_chunk_too_large_for_the_heap_is_dropped_and_later_ones_are_stored():
    store, rng = make(100, heap="ring", capacity=3000), np.random.default_rng(0)
    rows = rng.integers(0, 256, (5, 1600)).astype(np.uint8)
    for cell in range(4):  # as many frames as a chunk has
        store.write(np.array([cell]), rows[cell : cell + 1])
    with pytest.raises(HeapFullError):
        store.write(np.array([4]), rows[4:])
    assert not read(store, [4]).any()
    assert store.holds(np.arange(6)).tolist() == [False] * 4 + [True] * 2
    with pytest.raises(HeapStateError):
        read(store, [0])
    for cell, row in enumerate(stacks(scene(63)), start=4):
        store.write(np.array([cell]), row[np.newaxis])
    np.testing.assert_array_equal(read(store, range(40, 64)), stacks(scene(63))[36:])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda store: pickle.loads(pickle.dumps(store))])
def test_a_copy_is_independent(duplicate):
    store, rows = make(60), stacks(scene(103))
    for number in range(70):
        store.write(np.array([number % 60]), rows[number][np.newaxis])
    twin = duplicate(store)
    before = read(store, range(60))
    for number in range(70, 100):
        twin.write(np.array([number % 60]), rows[number][np.newaxis])
    np.testing.assert_array_equal(read(store, range(60)), before)
    np.testing.assert_array_equal(read(twin, range(40, 60)), before[40:])
    np.testing.assert_array_equal(read(twin, range(10, 40)), rows[70:100])


def test_clearing_makes_every_cell_zero():
    store, rows = make(60), stacks(scene(63))
    for _ in range(2):
        for cell, row in enumerate(rows):
            store.write(np.array([cell]), row[np.newaxis])
        np.testing.assert_array_equal(read(store, range(60)), rows)
        store.clear()
        assert (store.stored_nbytes(), store.heap.live) == (0, 0)
        assert not read(store, range(60)).any()


@pytest.mark.parametrize("content", ["noise", "blocks", "gradients"])
def test_images_that_are_not_stacked_take_about_as_much_as_cells(content):
    rng, count, shape = np.random.default_rng(0), 128, (3, 40, 40)
    images = rng.integers(0, 256, (count, *shape)).astype(np.uint8)
    if content == "blocks":
        images = rng.integers(0, 256, (count, 3, 5, 5)).astype(np.uint8).repeat(8, axis=2).repeat(8, axis=3)
    if content == "gradients":
        images = (rng.integers(0, 256, (count, 1, 1, 1)) + np.arange(40) * 3).astype(np.uint8) * np.ones(
            shape, np.uint8
        )
    images = np.ascontiguousarray(images)
    as_frames = FrameRequest("x", shape, np.dtype(np.uint8), count, preference=preference("x", "speed"))
    sizes = []
    for request in (as_frames, StoreRequest("x", (4800,), np.dtype(np.uint8), count)):
        (store,), _ = build_stores([request], Place())
        for cell, image in enumerate(images):
            store.write(np.array([cell]), image.reshape(1, -1))
        out = np.empty((count, 4800), np.uint8)
        store.read(np.arange(count), out)
        np.testing.assert_array_equal(out, images.reshape(count, -1))
        pending, frames = 0, 0
        if request is as_frames:
            streams = store.active.streams
            pending, frames = streams.filling.packed_nbytes, int(streams.sizes[streams.open].sum())
        sizes.append((store.stored_nbytes() - pending) / (count - frames))
    assert sizes[0] < 1.02 * sizes[1]


def test_the_number_of_chunks_is_that_of_the_worst_case():
    assert slots_for(GEOMETRY, 16, 1, 1000) >= 4 * 1000 / 16


@pytest.mark.parametrize("prefer", PREFERENCES)
@pytest.mark.parametrize("count", [1, 3, 15, 17, 70])
def test_few_observations_are_read_before_a_chunk_is_complete(kernels, prefer, count):
    rng = np.random.default_rng(0)
    request = FrameRequest("x", (1, 40, 40), np.dtype(np.uint8), 100, has_next=True, preference=preference("x", prefer))
    (store,), _ = build_stores([request], Place())
    images = rng.integers(0, 256, (count + 1, 1600)).astype(np.uint8)
    for cell in range(count):
        store.write(np.array([cell]), images[cell : cell + 1], images[cell + 1 : cell + 2])
    out, next_out = np.empty((count, 1600), np.uint8), np.empty((count, 1600), np.uint8)
    store.read(np.arange(count), out, next_out)
    for found, expected in ((out, images[:-1]), (next_out, images[1:])):
        np.testing.assert_array_equal(found, expected)
    for is_next, expected in ((False, images[:-1]), (True, images[1:])):
        np.testing.assert_array_equal(read(store, range(count), is_next), expected)
    assert store.describe().endswith(f"; {kernels.name})")


def test_an_unknown_preference_is_refused():
    with pytest.raises(ParameterError, match="it must be one of: speed, balanced, memory"):
        preference("buffer", "size")


class RestlessHeap(TableHeap):
    """Moves everything into a new array at every write, overwrites the old one, and does not count moves."""

    label = "restless"

    def __init__(self, cells):
        super().__init__(cells)
        self._data, self._spoilt = np.empty(0, np.uint8), []

    @property
    def capacity(self):
        return len(self._data)

    def view(self, start, length, /):
        return memoryview(self._data)[start : start + length]

    def addresses(self, starts, lengths, /):
        return starts.astype(np.uint64) + np.uint64(self._data.ctypes.data)

    def _parameters(self):
        return {}

    def _store(self, cells, payloads, lengths):
        self._forget(cells)
        kept = np.flatnonzero(self._lengths).tolist()
        pieces = [bytes(self.view(self._start_of[cell], self._length_of[cell])) for cell in kept]
        order, sizes = [*cells, *kept], [*lengths, *map(len, pieces)]
        self._data.fill(255)
        self._spoilt.append(self._data)
        self._data = np.frombuffer(b"".join([payloads, *pieces]), np.uint8).copy()
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        self._forget(kept)
        self._record(order, starts, sizes)


def test_addresses_are_not_cached_for_a_heap_that_does_not_count_moves(monkeypatch):
    monkeypatch.setattr(heaps, "create", lambda _, slots: RestlessHeap(slots))
    store, shown = make(80), stacks(scene(83))
    for cell in range(80):
        store.write(np.array([cell]), shown[cell][np.newaxis])
        assert (read(store, range(cell + 1)) == shown[: cell + 1]).all()

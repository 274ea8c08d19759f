"""``build_stores``: all stores of one buffer on one heap, which is made only if a store needs it."""

import logging
import pickle

import numpy as np
import pytest

from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.errors import HeapStateError, ParameterError, UnknownPluginError
from sb3_extra_buffers.stores import (
    CellStore,
    DeferredStore,
    PairStore,
    Place,
    RawStore,
    RewrittenStore,
    SharedStore,
    StoreRequest,
    auto,
    build_stores,
)

IMAGE, VECTOR = ((1600,), np.dtype(np.uint8)), ((4,), np.dtype(np.float32))
NOISE = np.random.default_rng(0).integers(0, 256, (1, 1600), np.uint8)


@pytest.fixture(autouse=True)
def built_in(monkeypatch):
    monkeypatch.setattr(auto, "names", lambda: ("gzip", "none", "rle"))


def request(label="image", cell=IMAGE, cells=10, codec=None, **options):
    return StoreRequest(label, *cell, cells, codec=None if codec is None else CodecSpec(codec), **options)


def flat(*values):
    return np.array(values, np.uint8).reshape(-1, 1).repeat(1600, axis=1)


def read(store, *cells, is_next=False):
    out = np.full((len(cells), store.row_nbytes), 99, np.uint8)
    store.read(np.array(cells, np.int64), *((None, out) if is_next else (out, None)))
    return out


def test_stores_get_sections_of_one_heap():
    requests = [request("a", codec="rle", has_next=True), request("b", VECTOR, 5, "gzip")]
    (a, b), heap = build_stores(requests, Place())
    assert heap.cells == 25
    a.write(np.arange(10), flat(*[1] * 10), flat(*[2] * 10))
    b.write(np.arange(5), np.full((5, 16), 9, np.uint8))
    assert (read(a, 0, 9) == 1).all()
    assert (read(a, 0, 9, is_next=True) == 2).all()
    assert (read(b, 0, 4) == 9).all()
    a.write(np.arange(10), flat(*[1] * 10))  # next observations are no longer pending
    assert heap.live == sum(store.stored_nbytes() for store in (a, b))


@pytest.mark.parametrize(
    ("options", "cell", "heap", "expected"),
    [
        ({}, IMAGE, "memory", CellStore),
        ({"has_next": True}, IMAGE, "memory", SharedStore),
        ({"has_next": True}, VECTOR, "memory", PairStore),
        ({"has_next": True}, IMAGE, "ring", SharedStore),
        ({"is_rewritten": True}, IMAGE, "memory", RewrittenStore),
        ({"is_rewritten": True}, VECTOR, "memory", RewrittenStore),
    ],
)
def test_the_request_decides_how_next_observations_are_stored(options, cell, heap, expected):
    parameters = {"capacity": 9999} if heap == "ring" else {}
    (store,), _ = build_stores([request(cell=cell, codec="gzip", **options)], Place(heap, parameters))
    assert type(store) is expected


def test_without_payloads_there_is_no_heap():
    requests = [request("a", codec="none"), request("b", VECTOR)]
    (a, b), heap = build_stores(requests, Place())
    assert heap is None
    assert isinstance(a, RawStore)
    assert (a.describe(), b.describe()) == ("none", "none (chosen: 16 bytes are too few to compress)")


def test_raw_stores_take_no_cells_of_the_heap():
    (a, b), heap = build_stores([request("a", VECTOR), request("b", codec="gzip")], Place())
    assert isinstance(a, RawStore)
    assert heap.cells == 10
    b.write(np.array([9]), flat(7))
    assert (read(b, 9) == 7).all()


@pytest.mark.parametrize(("heap", "parameters"), [("ring", {"capacity": 1 << 16}), ("mmap", {})])
def test_a_heap_with_a_limit_or_a_file_holds_uncompressed_cells_too(heap, parameters):
    (a, b), made = build_stores([request("a", codec="none"), request("b", VECTOR)], Place(heap, parameters))
    assert isinstance(a, CellStore)
    a.write(np.array([3]), NOISE)
    b.write(np.array([3]), np.full((1, 16), 5, np.uint8))
    assert made.live == 1600 + 16
    assert (read(a, 3) == NOISE).all()
    assert a.describe() == "none"
    assert b.describe().startswith("none (chosen:")


@pytest.mark.parametrize(
    ("codec", "error", "message"),
    [
        (CodecSpec("gzip", {"level": 99}), ParameterError, "level=99"),
        (CodecSpec("gzip", {"foo": 1}), ParameterError, "foo=1"),
        (CodecSpec("nowhere"), UnknownPluginError, "no codec named 'nowhere'"),
    ],
)
def test_an_invalid_codec_is_an_error_before_anything_is_stored(codec, error, message):
    with pytest.raises(error, match=message):
        build_stores([StoreRequest("a", *IMAGE, 10, codec=codec)], Place())


def test_an_invalid_heap_is_an_error_before_anything_is_stored():
    with pytest.raises(UnknownPluginError, match=r"no heap named 'rign'.*Did you mean 'ring'"):
        build_stores([request()], Place("rign"))
    with pytest.raises(ParameterError, match="capacity=None is not allowed; it must be given"):
        build_stores([request()], Place("ring"))


def test_parameters_are_not_changed():
    parameters = {}
    build_stores([request()], Place("mmap", parameters))
    assert parameters == {}


@pytest.mark.parametrize("codec", ["none", "gzip", None])
def test_a_file_without_a_limit_has_room_for_the_worst_case(codec):
    numbers = np.random.default_rng(0)
    (store,), heap = build_stores([request(codec=codec, has_next=True)], Place("mmap"))
    for lap in range(3):
        for cell in range(10):
            store.write(np.array([cell]), *(numbers.integers(0, 256, (1, 1600), np.uint8) for _ in range(2)))
        assert heap.evicted.cells == 0, lap
    assert store.holds(np.arange(10)).all()
    assert store.stored_nbytes() >= 2 * 10 * 1600  # nothing is shared: the worst case


def test_a_requested_capacity_is_kept():
    _, heap = build_stores([request(codec="none")], Place("mmap", {"capacity": 5000}))
    assert heap.capacity == 5000


def fill(store, *rows):
    """Write rows to the first cells, one by one."""
    for cell, row in enumerate(rows):
        store.write(np.array([cell]), row)


FIVE = [flat(number) for number in range(5)]  # as many as the choice waits for


def test_auto_waits_for_content_and_chooses_once_for_all_stores_of_a_request(caplog):
    (store,), _ = build_stores([request("Buffer image", has_next=True, prefer="memory")], Place())
    a, b = store.observations, store.apart._store
    assert isinstance(a, DeferredStore)
    assert isinstance(b, DeferredStore)
    assert store.describe() == a.describe() == "auto (not yet chosen, until 5 observations are stored)"
    assert not read(a, 0).any()
    assert not read(store, 0, is_next=True).any()
    assert (a.stored_nbytes(), a.overhead, a.holds(np.array([0])).tolist()) == (0, 0, [True])
    with caplog.at_level(logging.INFO, logger="sb3_extra_buffers"):
        b.write(np.array([0]), flat(7))  # waits for the observations
        fill(a, *FIVE[:4], FIVE[3])  # a repeated observation does not count
        assert a.describe() == b.describe() == store.describe()
        assert (read(a, 4, 0) == [[3], [0]]).all()
        assert not caplog.records
        a.write(np.array([5]), NOISE)
        b.write(np.array([1]), NOISE)
    assert a.describe() == b.describe()
    assert a.describe().startswith("gzip/")
    (message,) = (record.getMessage() for record in caplog.records)
    assert message.startswith("Buffer image: gzip/")
    assert a.explanation == store.explanation == message.partition("smaller; ")[2]
    assert (read(a, 5) == NOISE).all()
    assert (read(a, 4, 0, 2) == [[3], [0], [2]]).all()
    assert (read(b, 1) == NOISE).all()
    assert (read(b, 0) == 7).all()


def test_large_observations_that_never_change_are_not_held_for_long():
    (store,), _ = build_stores([request(cell=((1 << 20,), np.dtype(np.uint8)), cells=1000, streams=4)], Place())
    for step in range(4):
        assert store.describe().startswith("auto (not yet chosen")
        store.write(np.arange(4 * step, 4 * step + 4), np.full((4, 1 << 20), 7, np.uint8))
    assert store.stored_nbytes() < 1 << 20
    assert (read(store, 0, 15) == 7).all()


def test_each_request_has_its_own_choice():
    (a, b), _ = build_stores([request("a", prefer="memory"), request("b", prefer="memory")], Place())
    noise = np.random.default_rng(1).integers(0, 256, (5, 1, 1600), np.uint8)
    fill(a, *noise)
    fill(b, *FIVE)
    assert a.describe().startswith("none (chosen: no codec makes the first observations a fifth smaller")
    assert b.describe().startswith("gzip/")
    assert (read(a, 2) == noise[2]).all()


def test_noise_stays_within_the_capacity_of_a_ring():
    (a,), heap = build_stores([request()], Place("ring", {"capacity": 5000}))
    for cell in range(10):
        a.write(np.array([cell]), NOISE)
    assert a.describe().startswith("none (chosen")
    assert heap.live == 3 * 1600
    with pytest.raises(HeapStateError, match="evicted"):
        read(a, 0)


@pytest.mark.parametrize("written", [0, 3, 5])
def test_stores_pickle_before_and_after_the_choice(written):
    (store,), _ = build_stores([request(has_next=True, prefer="memory")], Place())
    for cell, row in enumerate(FIVE[:written]):
        store.write(np.array([cell]), row)
    store = pickle.loads(pickle.dumps(store))
    a, b = store.observations, store.apart._store
    assert store.describe().startswith("gzip/" if written == 5 else "auto (not yet")
    b.write(np.array([4]), NOISE)
    for cell, row in enumerate(FIVE):
        assert (read(a, cell) == (row if cell < written else 0)).all()
        a.write(np.array([cell]), row)
    assert (read(b, 4) == NOISE).all()
    b.write(np.array([3]), NOISE)  # by the choice that was made for the observations
    assert a.describe() == b.describe()
    assert a.describe().startswith("gzip/")
    assert (read(b, 3, 4) == NOISE).all()
    assert (read(a, 1, 4) == [[1], [4]]).all()


@pytest.mark.parametrize("written", [0, 3, 5])
def test_the_state_before_the_choice_holds_what_was_written(written):
    requests = [request(has_next=True, prefer="memory")]
    (store,), heap = build_stores(requests, Place())
    for cell, row in enumerate(FIVE[:written]):
        store.write(np.array([cell]), row)
    (twin,), _ = build_stores(requests, Place(), heap)
    twin.restore(store.state())
    assert twin.describe() == store.describe()
    assert twin.explanation == store.explanation
    for cell, row in enumerate(FIVE):
        assert (read(twin, cell) == (row if cell < written else 0)).all()
        twin.write(np.array([cell]), row)
    assert twin.describe().startswith("gzip/")


def test_clearing_keeps_the_chosen_codec():
    (a,), _ = build_stores([request(prefer="memory")], Place())
    a.clear()
    fill(a, *FIVE)
    a.clear()
    assert a.describe().startswith("gzip/")
    assert not read(a, 4).any()

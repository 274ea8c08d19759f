"""All stores of one buffer stand on one heap, which exists only if somebody needs it."""

import logging
import pickle

import numpy as np
import pytest

from sb3_extra_buffers.codecs import CellSpec, CodecSpec
from sb3_extra_buffers.errors import HeapStateError, ParameterError, UnknownPluginError
from sb3_extra_buffers.stores import CellStore, Demand, LazyStore, Place, RawStore, build_stores, choice, preferences

IMAGE, VECTOR = CellSpec(np.uint8, 1600), CellSpec(np.float32, 4)
NOISE = np.random.default_rng(0).integers(0, 256, (1, 1600), np.uint8)


@pytest.fixture(autouse=True)
def built_in(monkeypatch):
    for module in (choice, preferences):
        monkeypatch.setattr(module, "names", lambda: ("gzip", "none", "rle"))


def demand(label="image", cell=IMAGE, counts=(10,), codec=None):
    return Demand(label, cell, counts, None if codec is None else CodecSpec(codec))


def flat(*values):
    return np.array(values, np.uint8).reshape(-1, 1).repeat(1600, axis=1)


def read(store, *cells):
    out = np.full((len(cells), store.row_nbytes), 99, np.uint8)
    store.read(np.array(cells, np.int64), out)
    return out


def test_stores_get_sections_of_one_heap_side_by_side():
    demands = [demand("a", counts=(10, 10), codec="rle"), demand("b", VECTOR, (5,), "gzip")]
    ((a, b), (c,)), heap = build_stores(demands, Place())
    assert heap.cells == 25
    for number, store in enumerate((a, b)):
        store.write(np.arange(10), flat(*[number + 1] * 10))
    c.write(np.arange(5), np.full((5, 16), 9, np.uint8))
    assert (read(a, 0, 9) == 1).all()
    assert (read(b, 0, 9) == 2).all()
    assert (read(c, 0, 4) == 9).all()
    assert heap.live == sum(store.stored_nbytes() for store in (a, b, c))


def test_what_needs_no_payloads_gets_no_heap():
    demands = [demand("a", codec="none"), demand("b", VECTOR)]
    ((a,), (b,)), heap = build_stores(demands, Place())
    assert heap is None
    assert isinstance(a, RawStore)
    assert (a.codec, b.codec) == ("none", "none (chosen: 16 bytes are too few to compress)")


def test_raw_stores_take_no_cells_of_the_heap():
    ((a,), (b,)), heap = build_stores([demand("a", VECTOR), demand("b", codec="gzip")], Place())
    assert isinstance(a, RawStore)
    assert heap.cells == 10
    b.write(np.array([9]), flat(7))
    assert (read(b, 9) == 7).all()


@pytest.mark.parametrize(("heap", "parameters"), [("ring", {"capacity": 1 << 16}), ("mmap", {})])
def test_a_heap_that_was_asked_for_holds_raw_cells_too(heap, parameters):
    ((a,), (b,)), made = build_stores([demand("a", codec="none"), demand("b", VECTOR)], Place(heap, parameters))
    assert isinstance(a, CellStore)
    a.write(np.array([3]), NOISE)
    b.write(np.array([3]), np.full((1, 16), 5, np.uint8))
    assert made.live == 1600 + 16
    assert (read(a, 3) == NOISE).all()
    assert a.codec == "none"
    assert b.codec.startswith("none (chosen:")


@pytest.mark.parametrize(
    ("codec", "error", "message"),
    [
        (CodecSpec("gzip", {"level": 99}), ParameterError, "level=99"),
        (CodecSpec("gzip", {"foo": 1}), ParameterError, "foo=1"),
        (CodecSpec("nowhere"), UnknownPluginError, "no codec named 'nowhere'"),
    ],
)
def test_a_codec_that_cannot_be_had_is_an_error_before_anything_is_stored(codec, error, message):
    with pytest.raises(error, match=message):
        build_stores([Demand("a", IMAGE, (10,), codec)], Place())


def test_a_heap_that_cannot_be_had_is_an_error_before_anything_is_stored():
    with pytest.raises(UnknownPluginError, match=r"no heap named 'rign'.*Did you mean 'ring'"):
        build_stores([demand()], Place("rign"))
    with pytest.raises(ParameterError, match="capacity=None is not allowed; it must be given"):
        build_stores([demand()], Place("ring"))


def test_parameters_are_not_changed():
    parameters = {}
    build_stores([demand()], Place("mmap", parameters))
    assert parameters == {}


@pytest.mark.parametrize("codec", ["none", "gzip", None])
def test_a_file_without_a_limit_has_room_for_the_worst_case(codec):
    numbers = np.random.default_rng(0)
    ((a, b),), heap = build_stores([demand(counts=(10, 10), codec=codec)], Place("mmap"))
    for lap in range(3):
        for cell in range(10):
            for store in (a, b):
                store.write(np.array([cell]), numbers.integers(0, 256, (1, 1600), np.uint8))
        assert heap.evicted.cells == 0, lap
    assert a.holds(np.arange(10)).all()


def test_a_limit_that_was_set_is_kept():
    _, heap = build_stores([demand(codec="none")], Place("mmap", {"capacity": 5000}))
    assert heap.capacity == 5000


def test_auto_waits_for_content_and_then_chooses_once_for_all_stores_of_a_demand(caplog):
    ((a, b),), _ = build_stores([demand("Buffer image", counts=(10, 10))], Place())
    assert isinstance(a, LazyStore)
    assert a.codec == "auto (not yet chosen: nothing is stored)"
    assert not read(a, 0).any()
    assert (a.stored_nbytes(), a.overhead, a.holds(np.array([0])).tolist()) == (0, 0, [True])
    with caplog.at_level(logging.INFO, logger="sb3_extra_buffers"):
        b.write(np.array([0]), flat(7))
        a.write(np.array([0]), NOISE)
    assert a.codec == b.codec
    assert a.codec.startswith("gzip/1 (chosen: makes the first observations ")
    (message,) = (record.getMessage() for record in caplog.records)
    assert message.startswith("Buffer image: gzip/1 chosen: makes the first observations ")
    assert (read(a, 0) == NOISE).all()


def test_demands_are_judged_apart():
    ((a,), (b,)), _ = build_stores([demand("a"), demand("b")], Place())
    a.write(np.array([0]), NOISE)
    b.write(np.array([0]), flat(1))
    assert a.codec.startswith("none (chosen: gzip/1 makes the first observations only 1.00 times smaller")
    assert b.codec.startswith("gzip/1")
    assert (read(a, 0) == NOISE).all()


def test_what_turns_out_to_be_noise_stays_within_the_budget_of_a_ring():
    ((a,),), heap = build_stores([demand()], Place("ring", {"capacity": 5000}))
    for cell in range(10):
        a.write(np.array([cell]), NOISE)
    assert a.codec.startswith("none (chosen")
    assert heap.live == 3 * 1600
    with pytest.raises(HeapStateError, match="evicted"):
        read(a, 0)


@pytest.mark.parametrize("written", [False, True])
def test_stores_pickle_before_and_after_the_first_write(written):
    ((a, b),), _ = build_stores([demand(counts=(10, 10))], Place())
    if written:
        a.write(np.array([4]), flat(7))
    a, b = pickle.loads(pickle.dumps((a, b)))
    assert a.codec.startswith("gzip/1" if written else "auto (not yet")
    b.write(np.array([4]), NOISE if written else flat(8))
    assert b.codec.startswith("gzip/1")
    assert (read(b, 4) == (NOISE if written else 8)).all()
    assert (read(a, 4) == (7 if written else 0)).all()


def test_clearing_a_lazy_store_keeps_the_choice():
    ((a,),), _ = build_stores([demand()], Place())
    a.clear()
    a.write(np.array([4]), flat(7))
    a.clear()
    assert a.codec.startswith("gzip/1")
    assert not read(a, 4).any()

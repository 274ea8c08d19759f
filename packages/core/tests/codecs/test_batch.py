"""Batches go through native code, loops and threads to the same result, and refuse what does not fit."""

import threading

import numpy as np
import pytest

from sb3_extra_buffers import codecs
from sb3_extra_buffers.codecs import CellSpec, bind, decode_batch, encode_batch
from sb3_extra_buffers.codecs import batch as batch_module
from sb3_extra_buffers.errors import CellMismatchError, HeapStateError, ParameterError, PayloadError
from sb3_extra_buffers.memory import FlatBytes

CELL = CellSpec(np.uint8, 50)


class Plain:
    """A codec without batch methods: the smallest thing that fulfils the protocol."""

    spec = codecs.CodecSpec("plain")
    cell = CELL
    max_encoded_nbytes = 51
    detects_corruption = False

    def encode(self, cell, /):
        return np.append(np.frombuffer(cell, np.uint8), np.uint8(len(set(bytes(cell)))))

    def decode_into(self, payload, out, /):
        if len(payload) != 51:
            raise PayloadError("plain", len(payload), "it has another size")
        self.threads.add(threading.get_ident())
        memoryview(out).cast("B")[:] = payload[:50]

    def __init__(self):
        self.threads = set()


@pytest.fixture
def rows():
    return np.random.default_rng(0).integers(0, 5, (7, 50), np.uint8)


def test_a_codec_without_batch_methods_is_looped_over(rows):
    codec = Plain()
    room = np.zeros(7 * 51, np.uint8)
    lengths = encode_batch(codec, rows, room)
    assert lengths.tolist() == [51] * 7
    out = np.zeros((7, 50), np.uint8)
    decode_batch(codec, FlatBytes(room), lengths.cumsum() - lengths, lengths, out)
    assert (out == rows).all()
    assert codec.threads == {threading.get_ident()}


@pytest.mark.parametrize("method", ["encode_batch", "decode_batch"])
def test_a_codec_with_one_of_two_batch_methods_is_looped_over(rows, method):
    codec = Plain()
    setattr(codec, method, lambda *_: pytest.fail("half a capability is none"))
    room, out = np.zeros(7 * 51, np.uint8), np.zeros((7, 50), np.uint8)
    lengths = encode_batch(codec, rows, room)
    decode_batch(codec, FlatBytes(room), lengths.cumsum() - lengths, lengths, out)
    assert (out == rows).all()


def test_threads_that_are_asked_for_are_used(rows, monkeypatch):
    codec, parts = Plain(), []
    monkeypatch.setattr(batch_module, "run_split", lambda work, count, threads: parts.append((count, threads)))
    room = np.zeros(7 * 51, np.uint8)
    lengths = encode_batch(codec, rows, room)
    places = lengths.cumsum() - lengths, lengths
    decode_batch(codec, FlatBytes(room), *places, np.zeros((7, 50), np.uint8), threads=3)
    assert parts == [(7, 3)]


def test_automatic_threads_follow_what_the_codec_declares(rows, monkeypatch):
    codec, parts = Plain(), []
    monkeypatch.setattr(batch_module, "run_split", lambda work, count, threads: parts.append(threads))
    monkeypatch.setattr(batch_module, "automatic_threads", lambda: 4)
    out = np.zeros((7, 50), np.uint8)
    source, places = FlatBytes(np.zeros(400, np.uint8)), (np.zeros(7, np.int64), np.full(7, 51))
    for share in (None, 50, 100, 1000):
        codec.min_nbytes_per_thread = share
        decode_batch(codec, source, *places, out)
    assert parts == [1, 4, 3, 0]  # 350 bytes; run_split makes one thread of none


def test_a_damaged_payload_is_named_by_its_number_on_any_thread(rows):
    for codec in (Plain(), bind("rle", CELL)):
        room = np.zeros(7 * codec.max_encoded_nbytes, np.uint8)
        lengths = encode_batch(codec, rows, room)
        starts = lengths.cumsum() - lengths
        lengths[5] = 0
        for threads in (1, 2, 7):
            with pytest.raises(PayloadError, match="payload 5 of the batch") as caught:
                decode_batch(codec, FlatBytes(room), starts, lengths, np.zeros((7, 50), np.uint8), threads=threads)
            assert caught.value.index == 5


def test_positions_outside_the_source_are_refused(rows):
    codec = bind("none", CELL)
    with pytest.raises(HeapStateError, match=r"decode payload 1 of the batch: its cell has no payload"):
        decode_batch(
            codec, FlatBytes(rows.reshape(-1)), np.array([0, -1]), np.array([50, 50]), np.zeros((2, 50), np.uint8)
        )


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2"])
def test_threads_must_be_a_positive_integer(rows, threads):
    with pytest.raises(ParameterError, match=f"threads={threads!r}"):
        decode_batch(
            bind("none", CELL), FlatBytes(rows.reshape(-1)), *np.zeros((2, 0), int), rows[:0].copy(), threads=threads
        )


def test_shapes_that_do_not_fit_are_refused_before_anything_is_written(rows):
    codec = bind("none", CELL)
    with pytest.raises(CellMismatchError, match=r"rows is .*\(7, 49\)"):
        encode_batch(codec, rows[:, :49].copy(), np.zeros(400, np.uint8))
    for out in (
        np.zeros(349, np.uint8),
        np.zeros(350, np.int8),
        np.zeros((7, 50), np.uint8),
        np.zeros(700, np.uint8)[::2],
    ):
        with pytest.raises(CellMismatchError, match="at least 350 contiguous uint8"):
            encode_batch(codec, rows, out)
    source, out = FlatBytes(rows.reshape(-1)), np.full((2, 50), 9, np.uint8)
    with pytest.raises(CellMismatchError, match=r"\(2, 50\)"):
        decode_batch(codec, source, np.zeros(3, int), np.full(3, 50), out)
    with pytest.raises(CellMismatchError, match="two one-dimensional arrays of one length"):
        decode_batch(codec, source, np.zeros(2, int), np.full(3, 50), out)
    assert (out == 9).all()


def test_what_is_no_array_or_no_source_is_refused_with_the_way_out(rows):
    codec, out = bind("none", CELL), np.zeros((7, 50), np.uint8)
    places = np.arange(7) * 50, np.full(7, 50)
    with pytest.raises(CellMismatchError, match=r"source is an object of type ndarray.*FlatBytes\(array\)"):
        decode_batch(codec, rows.reshape(-1), *places, out)
    with pytest.raises(CellMismatchError, match="rows is an object of type list"):
        encode_batch(codec, rows.tolist(), np.zeros(350, np.uint8))
    with pytest.raises(CellMismatchError, match="out is an object of type bytearray"):
        encode_batch(codec, rows, bytearray(350))
    with pytest.raises(CellMismatchError, match="starts is an array of float64, expected an array of integers"):
        decode_batch(codec, FlatBytes(rows.reshape(-1)), places[0] + 0.5, places[1], out)
    with pytest.raises(CellMismatchError, match=r"view\(numpy.uint8\)"):
        encode_batch(codec, rows.astype(np.float32), np.zeros(350, np.uint8))


@pytest.mark.parametrize("name", codecs.names())
def test_read_only_room_is_refused_and_not_written_to(rows, name):
    codec, room = bind(name, CELL), bytes(7 * 60)
    with pytest.raises(CellMismatchError, match="out is read-only"):
        encode_batch(codec, rows, np.frombuffer(room, np.uint8))
    assert room == bytes(7 * 60)

"""What is particular to LZ4: three modes on one scale, and frames that other tools read."""

import lz4.block
import lz4.frame
import numpy as np
import pytest

from sb3_extra_buffers.codecs import CellSpec, bind, decode_batch, encode_batch
from sb3_extra_buffers.errors import ParameterError, PayloadError
from sb3_extra_buffers.memory import FlatBytes
from sb3_extra_buffers_codec_lz4 import block, native

CELL = CellSpec(np.uint8, 4000)
DATA = (np.arange(4000) // 7 % 50).astype(np.uint8).tobytes()


@pytest.mark.parametrize(
    ("level", "mode"),
    [
        (12, {"mode": "high_compression", "compression": 12}),
        (1, {"mode": "high_compression", "compression": 1}),
        (0, {"mode": "default"}),
        (-8, {"mode": "fast", "acceleration": 8}),
    ],
)
def test_the_level_chooses_the_mode_of_a_block(level, mode):
    assert bind(f"lz4-block/{level}", CELL).encode(DATA) == lz4.block.compress(DATA, store_size=False, **mode)


def test_a_frame_is_what_any_lz4_reader_reads():
    payload = bind("lz4-frame/3", CELL).encode(DATA)
    assert lz4.frame.decompress(payload) == DATA
    assert lz4.frame.get_frame_info(payload)["content_size"] == 4000


@pytest.mark.parametrize(
    ("codec", "levels"),
    [("lz4-frame/17", "-65536 to 16"), ("lz4-frame/-65537", "-65536 to 16"), ("lz4-block/13", "-65537 to 12"),
     ("lz4-block/16", "-65537 to 12"), ("lz4-block/-65538", "-65537 to 12")],
)  # fmt: skip
def test_levels_that_the_library_would_clamp_in_silence_are_refused(codec, levels):
    with pytest.raises(ParameterError, match=f"levels: {levels}"):
        bind(codec, CELL)


def test_a_frame_that_claims_more_than_a_cell_does_not_get_the_memory():
    bomb = lz4.frame.compress(bytes(50_000_000))
    assert len(bomb) > 4000
    small = lz4.frame.compress(bytes(900_000))
    codec = bind("lz4-frame", CELL)
    with pytest.raises(PayloadError, match="no payload of this codec is longer than 4000 bytes"):
        codec.decode_into(bomb, bytearray(4000))
    with pytest.raises(PayloadError, match="does not end where the payload ends"):
        codec.decode_into(small, bytearray(4000))
    out = bytearray(4000)
    codec.decode_into(codec.encode(DATA), out)
    assert out == DATA


def test_a_block_that_holds_less_than_a_cell_is_refused():
    short = lz4.block.compress(DATA[:3000], store_size=False)
    with pytest.raises(PayloadError, match="it holds 3000 bytes, the cell has 4000"):
        bind("lz4-block", CELL).decode_into(short, bytearray(4000))


# Batches, decoded in each of three ways.


@pytest.fixture(params=["python", "ctypes", "compiled"])
def way(request, monkeypatch):
    if request.param != "python" and native.library() is None:
        pytest.skip("this build of lz4 does not export its functions")
    if request.param == "python":
        monkeypatch.setattr(native, "decoder", lambda: None)
    elif request.param == "ctypes":
        monkeypatch.setattr(native, "decoder", lambda: native._decode_by_ctypes)
    else:
        pytest.importorskip("numba")
    return request.param


def encoded(rows, codec):
    """Payloads with a gap between them, their positions and lengths."""
    room = np.empty(len(rows) * codec.max_encoded_nbytes, np.uint8)
    lengths = encode_batch(codec, rows, room)
    starts = np.cumsum(lengths) - lengths
    data = np.zeros(int(lengths.sum()) + 7 * len(rows), np.uint8)
    for index, (start, length) in enumerate(zip(starts, lengths)):
        data[start + 7 * index : start + 7 * index + length] = room[start : start + length]
    return data, starts + 7 * np.arange(len(rows)), lengths


def screens(count=40, nbytes=4000):
    """Rows that compress well, a little, and not at all."""
    noise = np.random.default_rng(5).integers(0, 256, (count, nbytes), np.uint8)
    for index, row in enumerate(noise):
        row[: nbytes * (index % 5) // 4] = index
    return noise


@pytest.mark.parametrize("threads", [1, 3])
def test_a_batch_is_decoded_into_its_rows_and_nowhere_else(way, threads):
    rows, codec = screens(), bind("lz4-block/0", CELL)
    data, starts, lengths = encoded(rows, codec)
    assert lengths.min() < 100
    assert lengths.max() == 4000
    chosen = np.random.default_rng(6).integers(0, len(rows), 200)
    memory = np.full((202, 4000), 9, np.uint8)
    decode_batch(codec, FlatBytes(data), starts[chosen], lengths[chosen], memory[1:-1], threads=threads)
    assert (memory[1:-1] == rows[chosen]).all()
    assert (memory[[0, -1]] == 9).all()


def test_an_altered_payload_is_an_error_with_its_index_or_a_cell_and_never_reaches_beyond_its_row(way):
    rows, codec, random = screens(8), bind("lz4-block/0", CELL), np.random.default_rng(7)
    data, starts, lengths = encoded(rows, codec)
    small = np.flatnonzero(lengths < 4000)
    refused = 0
    for _ in range(300):
        altered, target = data.copy(), int(random.choice(small))
        where = starts[target] + random.integers(0, lengths[target], 3)
        altered[where] ^= random.integers(1, 256, 3, np.uint8)
        memory, wrong = np.full((10, 4000), 9, np.uint8), None
        try:
            decode_batch(codec, FlatBytes(altered), starts, lengths, memory[1:-1], threads=1)
        except PayloadError as error:
            wrong = error.index
        if wrong is None:
            others = np.arange(8) != target
            assert (memory[1:-1][others] == rows[others]).all()
        else:
            assert wrong == target
            refused += 1
        assert (memory[[0, -1]] == 9).all()
    assert refused > 50


@pytest.mark.parametrize("length", [0, 4001])
def test_a_payload_of_an_impossible_length_is_refused(way, length):
    codec = bind("lz4-block", CELL)
    source = FlatBytes(np.zeros(5000, np.uint8))
    with pytest.raises(PayloadError) as caught:
        decode_batch(codec, source, np.array([0]), np.array([length]), np.empty((1, 4000), np.uint8))
    assert caught.value.index == 0


def test_without_the_functions_of_the_library_the_codec_works_and_says_so(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: None)
    monkeypatch.setattr(native, "decoder", native.decoder.__wrapped__)
    codec, rows = bind("lz4-block/0", CELL), screens()
    data, starts, lengths = encoded(rows, codec)
    out = np.empty_like(rows)
    decode_batch(codec, FlatBytes(data), starts, lengths, out)
    assert (out == rows).all()
    assert codec.min_nbytes_per_thread is None
    assert "through Python" in block.sb3_extra_buffers_codec().summary


def test_a_library_without_the_symbol_is_recognized(monkeypatch):
    monkeypatch.setattr(native.ctypes, "CDLL", lambda path: object())
    assert native.library.__wrapped__() is None

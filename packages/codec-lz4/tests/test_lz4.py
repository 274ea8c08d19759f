"""What is particular to LZ4: three modes on one scale, and frames that other tools read."""

import lz4.block
import lz4.frame
import numpy as np
import pytest

from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import ParameterError, PayloadError

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

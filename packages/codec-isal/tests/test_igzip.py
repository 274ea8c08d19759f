"""What is particular to igzip: gzip frames, and levels that are never clamped in silence."""

import gzip

import numpy as np
import pytest

from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import ParameterError, PayloadError

CELL = CellSpec(np.float32, 1000)
DATA = np.repeat(np.arange(10, dtype=np.float32), 100)


def test_any_gzip_reader_can_read_a_payload_and_the_other_way_round():
    codec, plain = bind("igzip", CELL), bind("gzip", CELL)
    assert gzip.decompress(codec.encode(DATA)) == DATA.tobytes()
    out = np.zeros(1000, np.float32)
    codec.decode_into(plain.encode(DATA), out)
    assert (out == DATA).all()


@pytest.mark.parametrize("level", [-1, 4, 9])
def test_levels_that_igzip_does_not_have_are_refused(level):
    with pytest.raises(ParameterError, match=rf"codec 'igzip': level={level} is not allowed; levels: 0 to 3"):
        bind(f"igzip/{level}", CELL)


def test_a_payload_of_a_larger_cell_is_refused_before_it_is_inflated():
    bomb = bind("igzip", CellSpec(np.uint8, 1_000_000)).encode(bytes(1_000_000))
    assert len(bomb) < 4000
    with pytest.raises(PayloadError, match="does not end where the payload ends"):
        bind("igzip", CELL).decode_into(bomb, bytearray(4000))

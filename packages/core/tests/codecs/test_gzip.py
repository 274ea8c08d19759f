"""gzip payloads are gzip files, whatever the dtype."""

import gzip

import numpy as np
import pytest

from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import PayloadError


@pytest.mark.parametrize("dtype", ["u1", "<f4", "<i8"])
def test_any_gzip_reader_can_read_a_payload(dtype):
    cell = np.zeros(500, dtype)
    payload = bind("gzip", CellSpec(dtype, 500)).encode(cell)
    assert gzip.decompress(payload) == cell.tobytes()
    assert len(payload) < cell.nbytes


def test_a_payload_that_holds_another_cell_size_is_refused_before_it_is_inflated():
    small, large = bind("gzip", CellSpec("u1", 100)), bind("gzip", CellSpec("u1", 50_000_000))
    bomb = large.encode(np.zeros(50_000_000, np.uint8))[:]
    codec = bind("gzip", CellSpec("u1", 60_000))
    with pytest.raises(PayloadError, match="does not end where the payload ends"):
        codec.decode_into(bomb, bytearray(60_000))
    with pytest.raises(PayloadError, match="it holds 100 bytes, the cell has 60000"):
        codec.decode_into(small.encode(bytes(100)), bytearray(60_000))

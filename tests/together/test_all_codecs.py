"""Every codec beside every other: each reads its own, refuses the others' and shares threads and heaps with them."""

import numpy as np
import pytest

from sb3_extra_buffers import codecs
from sb3_extra_buffers.codecs import CellSpec, bind, decode_batch, encode_batch
from sb3_extra_buffers.doctor import examine
from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.testing.processes import run_python

CELL = CellSpec(np.uint8, 7056)
FAMILIES = [{"gzip", "igzip"}, {"rle", "rle-jit"}]


def frames(count):
    random = np.random.default_rng(0)
    return np.repeat(random.integers(0, 4, (count, 1764), np.uint8) * 60, 4, axis=1)


def test_everything_is_installed_and_healthy():
    assert codecs.names() == ("bz2", "gzip", "igzip", "lz4-block", "lz4-frame", "none", "rle", "rle-jit", "zstd")
    assert examine().healthy


def test_listing_in_a_fresh_process_imports_no_library():
    code = """
import sys
from sb3_extra_buffers import codecs
assert len(codecs.names()) == 9
plugins = [name for name in sys.modules if name.startswith("sb3_extra_buffers_codec_")]
print(*plugins, *[name for name in ("zstandard", "lz4", "isal", "numba", "torch") if name in sys.modules])
"""
    assert run_python(code).split() == []


@pytest.mark.parametrize("writer", codecs.names())
@pytest.mark.parametrize("reader", codecs.names())
def test_a_payload_is_read_by_its_family_and_refused_or_garbled_by_nobody_else_in_silence_where_checked(writer, reader):
    cell, out = frames(1)[0], np.zeros(CELL.nbytes, np.uint8)
    payload, codec = bind(writer, CELL).encode(cell), bind(reader, CELL)
    kin = writer == reader or any({writer, reader} <= family for family in FAMILIES)
    if kin:
        codec.decode_into(payload, out)
        assert (out == cell).all()
    elif len(payload) == CELL.nbytes and not codec.detects_corruption:
        codec.decode_into(payload, out)  # a raw payload is a raw payload to everyone
        assert (out == cell).all()
    else:
        with pytest.raises(PayloadError):
            codec.decode_into(payload, out)


def test_cells_of_different_codecs_live_side_by_side_in_one_heap():
    names, rows = codecs.names(), frames(9)
    heap, bound = create("memory", 9), [bind(name, CELL) for name in codecs.names()]
    for cell, codec in enumerate(bound):
        room = heap.reserve(np.array([cell]), codec.max_encoded_nbytes)
        heap.commit(encode_batch(codec, rows[cell : cell + 1], room))
    for cell, codec in enumerate(bound):
        out = np.empty((1, CELL.nbytes), np.uint8)
        decode_batch(codec, heap, *heap.locate(np.array([cell])), out)
        assert (out[0] == rows[cell]).all(), names[cell]

"""rle-jit and rle are one codec in two implementations: each reads and writes what the other does."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_extra_buffers.codecs import CellSpec, bind, decode_batch, encode_batch
from sb3_extra_buffers.errors import CellMismatchError, HeapStateError, PayloadError
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.memory import FlatBytes

dtypes = st.sampled_from(["?", "u1", "i2", "u4", "f8", "g", ">f4"])
# Where the kernels change their way of working: words of 8, blocks of 32, ends of 1, 2 and 4 bytes.
counts = st.integers(1, 80) | st.sampled_from([255, 256, 257, 1000, 65535, 65536, 65537])


@st.composite
def cells(draw):
    cell = CellSpec(draw(dtypes), draw(counts))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    longest = draw(st.sampled_from([1, 2, 3, 9, 40, 300]))
    values = random.integers(0, draw(st.sampled_from([2, 256])), (cell.count, cell.dtype.itemsize), np.uint8)
    rows = np.repeat(values, random.integers(1, longest + 1, cell.count), axis=0)[: cell.count]
    return cell, np.ascontiguousarray(rows).reshape(-1)


@settings(max_examples=300, deadline=None)
@given(cells())
def test_both_write_the_same_bytes_and_read_each_other(case):
    cell, data = case
    numpy_codec, compiled = bind("rle", cell), bind("rle-jit", cell)
    payload = bytes(numpy_codec.encode(data))
    assert bytes(compiled.encode(data)) == payload
    out = np.full(cell.nbytes, 0xA5, np.uint8)
    compiled.decode_into(payload, out)
    assert (out == data).all()


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.sampled_from([("u1", 40), ("<i2", 30), ("f8", 20), ("u1", 300)]))
def test_both_refuse_the_same_payloads(payload, shape):
    verdicts = []
    for name in ("rle", "rle-jit"):
        codec = bind(name, CellSpec(*shape))
        out = np.zeros(codec.cell.nbytes, np.uint8)
        try:
            codec.decode_into(payload, out)
            verdicts.append(out.tobytes())
        except PayloadError:
            verdicts.append(None)
    assert verdicts[0] == verdicts[1]


@pytest.mark.parametrize("heap", [("memory", {}), ("ring", {"capacity": 3 << 20}), ("mmap", {"capacity": 3 << 20})])
def test_a_batch_is_decoded_from_every_heap_across_its_segments(heap):
    cell = CellSpec(np.uint8, 9000)
    random = np.random.default_rng(0)
    rows = np.repeat(random.integers(0, 256, (300, 3000), np.uint8), 3, axis=1)
    rows[::3] = random.integers(0, 256, (100, 9000), np.uint8)
    codec, store = bind("rle-jit", cell), create(heap[0], 300, **heap[1])
    for start in range(0, 300, 4):
        part = np.arange(start, start + 4)
        store.commit(encode_batch(codec, rows[part], store.reserve(part, 4 * codec.max_encoded_nbytes)))
    order = random.integers(0, 300, 500)
    out = np.empty((500, 9000), np.uint8)
    for threads in (1, 2):
        out.fill(0)
        decode_batch(codec, store, *store.locate(order), out, threads=threads)
        assert (out == rows[order]).all()


def test_binding_compiles_everything_so_that_nothing_is_compiled_after_a_fork():
    from sb3_extra_buffers_codec_rle_numba import rle_jit

    codec = bind("rle-jit", CellSpec(np.float32, 50))
    before = [len(kernel.signatures) for kernel in (rle_jit.encode_rows, rle_jit.decode_rows)]
    for dtype in ("u1", "f8", "g"):
        codec = bind("rle-jit", CellSpec(dtype, 70_000))
        codec.decode_into(codec.encode(bytes(codec.cell.nbytes)), bytearray(codec.cell.nbytes))
    assert before == [1, 1] == [len(kernel.signatures) for kernel in (rle_jit.encode_rows, rle_jit.decode_rows)]


def test_compiled_code_is_kept_on_disk(tmp_path):
    code = """
from sb3_extra_buffers_codec_rle_numba import rle_jit
print(sum(rle_jit.decode_rows.stats.cache_hits.values()))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    hits = [
        int(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)
        for _ in range(2)
    ]
    assert hits == [0, 1]
    assert list(tmp_path.rglob("*.nbi"))


def test_the_methods_themselves_refuse_shapes_that_would_lead_beyond_the_memory():
    codec = bind("rle-jit", CellSpec(np.uint8, 64))
    rows, room = np.zeros((4, 64), np.uint8), np.zeros(4 * 64, np.uint8)
    lengths = codec.encode_batch(rows, room)
    starts = lengths.cumsum() - lengths
    for out in (rows[:1], rows[:, :63], rows.T, rows.view(np.int8)):
        with pytest.raises(CellMismatchError):
            codec.decode_batch(FlatBytes(room), starts, lengths, out)
    with pytest.raises(CellMismatchError, match="at least 256"):
        codec.encode_batch(rows, room[:255])
    with pytest.raises(HeapStateError):
        codec.decode_batch(FlatBytes(room), np.array([2**63 - 5]), np.array([99]), rows[:1])
    with pytest.raises(CellMismatchError, match="read-only"):
        codec.encode_batch(rows, np.frombuffer(bytes(256), np.uint8))


def test_without_the_compiler_the_codec_says_so():
    code = """
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import PluginLoadError
try:
    bind("rle-jit", CellSpec("u1", 10))
except PluginLoadError as error:
    print(error)
"""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "NUMBA_DISABLE_JIT is set" in done.stdout

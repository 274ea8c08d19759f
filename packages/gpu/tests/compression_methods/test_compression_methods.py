"""The run-length functions of 0.5.0: their import path, their arguments, and every value exactly."""

import copy
import pickle

import numpy as np
import pytest
import torch as th

from sb3_extra_buffers.errors import HeapFullError, ParameterError, PayloadError
from sb3_extra_buffers.gpu_buffers import RawBuffer, compression_methods
from sb3_extra_buffers.gpu_buffers.compression_methods.compression_methods import rle_compress, rle_decompress


def there_and_back(values, buffer, runs_type=th.uint16):
    place = rle_compress(values, buffer, values.dtype, runs_type)
    return rle_decompress(buffer, *place, values.dtype, runs_type, {"size": values.numel()})


def test_the_package_has_them_too():
    assert (compression_methods.rle_compress, compression_methods.rle_decompress) == (rle_compress, rle_decompress)
    assert isinstance(compression_methods.has_zstd(), bool)


@pytest.mark.parametrize("dtype", [th.uint8, th.int16, th.uint16, th.float16, th.float32, th.float64, th.bool])
@pytest.mark.parametrize("count", [0, 1, 2, 300, 5000])
def test_what_is_compressed_comes_back_exactly(dtype, count):
    random, buffer = np.random.default_rng(count), RawBuffer(1 << 16)
    for high in (1, 2, 100):
        values = th.from_numpy(np.sort(random.integers(0, high, count))).to(dtype)
        found = there_and_back(values, buffer)
        assert found.dtype == dtype
        assert th.equal(found, values)


def test_floats_keep_their_bits():
    values = th.tensor([0.5, -1.75, 0.0, -0.0, float("inf"), float("nan"), float("nan")])
    assert there_and_back(values, RawBuffer(100)).numpy().tobytes() == values.numpy().tobytes()


def test_run_lengths_come_before_values():
    buffer = RawBuffer(64)
    pos_runs, pos_elem, runs = rle_compress(th.tensor([7, 7, 9, 9, 9], dtype=th.uint8), buffer)
    assert (pos_runs, pos_elem, runs) == (0, 4, 2)
    assert buffer.bytes[:6].tolist() == [2, 0, 3, 0, 7, 9]


def test_runs_longer_than_their_dtype_are_refused_and_not_wrapped():
    values, buffer = th.zeros(70_000, dtype=th.uint8), RawBuffer(64)
    with pytest.raises(ParameterError, match="a run has 70000 elements"):
        rle_compress(values, buffer)
    assert th.equal(there_and_back(values, buffer, th.int32), values)


def test_values_that_the_dtype_cannot_hold_are_refused():
    with pytest.raises(ParameterError, match="exactly"):
        rle_compress(th.tensor([0.5, 300.0]), RawBuffer(64))
    rle_compress(th.tensor([5, 255]), RawBuffer(64))  # of int64, and it can


def test_a_size_that_the_runs_do_not_have_is_refused():
    buffer = RawBuffer(64)
    place = rle_compress(th.tensor([7, 7, 9], dtype=th.uint8), buffer)
    with pytest.raises(PayloadError, match="do not add up to 4"):
        rle_decompress(buffer, *place, th.uint8, th.uint16, {"size": 4})
    with pytest.raises(PayloadError, match="do not add up"):
        rle_decompress(RawBuffer(8).to("cpu"), 0, 4, 0, th.uint8, th.uint16, {"shape": (1,)})


def test_regions_are_allocated_one_after_the_other_and_then_from_the_beginning():
    buffer = RawBuffer(100)
    assert [buffer.malloc(nbytes) for nbytes in (40, 40, 40, 0, 100)] == [(0, 40), (40, 40), (0, 40), (40, 0), (0, 100)]
    for nbytes in (101, -1):
        with pytest.raises(HeapFullError, match="larger RawBuffer"):
            buffer.malloc(nbytes)
    buffer.malloc(30)
    for twin in (copy.deepcopy(buffer), pickle.loads(pickle.dumps(buffer)), buffer):
        assert twin.malloc(10) == (30, 10)

"""Dtypes of torch and of numpy, and which to store."""

import numpy as np
import pytest
import torch as th
from hypothesis import given
from hypothesis import strategies as st

from sb3_extra_buffers.compressed import utils as host_utils
from sb3_extra_buffers.compressed.utils import has_zstd as core_has_zstd
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.gpu_buffers import size_estimation, utils

PAIRS = {
    "bool": th.bool,
    "uint8": th.uint8,
    "uint16": th.uint16,
    "uint32": th.uint32,
    "uint64": th.uint64,
    "int8": th.int8,
    "int16": th.int16,
    "int32": th.int32,
    "int64": th.int64,
    "float16": th.float16,
    "float32": th.float32,
    "float64": th.float64,
    "complex64": th.complex64,
    "complex128": th.complex128,
}


@pytest.mark.parametrize(("name", "dtype"), PAIRS.items())
def test_dtypes_translate_both_ways_and_hold_the_same_bits(name, dtype):
    assert utils.torch_dtype_to_numpy(dtype) == np.dtype(name)
    for form in (name, np.dtype(name), np.dtype(name).type):
        assert utils.numpy_dtype_to_torch(form) is dtype
    assert utils.torch_dtype_element_size(dtype) == np.dtype(name).itemsize
    array = np.array([0, 1, 1, 0], name)
    assert th.from_numpy(array).dtype is dtype
    assert th.from_numpy(array).view(th.uint8).numpy().tobytes() == array.tobytes()


def test_other_names_of_a_numpy_dtype_are_known_too():
    assert utils.numpy_dtype_to_torch(float) is th.float64
    assert utils.numpy_dtype_to_torch(np.longlong) is th.int64
    assert utils.numpy_dtype_to_torch(np.dtype("<u2" if np.little_endian else ">u2")) is th.uint16


@pytest.mark.parametrize("dtype", [None, "nonsense", th.uint8, 3])
def test_what_is_no_dtype_of_numpy_is_refused(dtype):
    with pytest.raises(ParameterError, match="it must name a dtype of numpy"):
        utils.numpy_dtype_to_torch(dtype)


@pytest.mark.parametrize("dtype", ["U4", "datetime64[s]", object, [("x", "u1")]])
def test_what_torch_does_not_have_is_refused_with_what_it_has(dtype):
    with pytest.raises(ParameterError, match="torch has these: bool, uint8"):
        utils.numpy_dtype_to_torch(dtype)


def test_another_byte_order_is_refused_with_the_one_to_use():
    with pytest.raises(ParameterError, match="byte order than the machine's: use uint16"):
        utils.numpy_dtype_to_torch(np.dtype("u2").newbyteorder())


def test_bfloat16_has_a_size_but_no_counterpart():
    assert utils.torch_dtype_element_size(th.bfloat16) == 2
    with pytest.raises(ParameterError, match=r"dtype=torch.bfloat16 is not allowed.*to float32"):
        utils.torch_dtype_to_numpy(th.bfloat16)


@pytest.mark.parametrize("dtype", [np.uint8, "uint8", None])
def test_only_dtypes_of_torch_have_a_torch_size_or_a_numpy_name(dtype):
    with pytest.raises(ParameterError, match="it must be a dtype of torch"):
        utils.torch_dtype_element_size(dtype)
    with pytest.raises(ParameterError, match="numpy has these"):
        utils.torch_dtype_to_numpy(dtype)


@pytest.mark.parametrize(
    ("largest", "signed", "dtype"),
    [
        (0, False, th.uint8),
        (255, False, th.uint8),
        (256, False, th.uint16),
        (65535, False, th.uint16),
        (65536, False, th.uint32),
        (2**32, False, th.uint64),
        (2**64, False, th.float32),
        (127, True, th.int8),
        (128, True, th.int16),
        (2**31, True, th.int64),
        (1e200, False, th.float64),
    ],
)
def test_the_smallest_dtype_ends_where_the_next_begins(largest, signed, dtype):
    assert utils.find_smallest_dtype(largest, signed) is dtype


def test_a_number_too_large_for_all_gives_the_fallback():
    assert utils.find_smallest_dtype(10**400) is th.float32
    assert utils.find_smallest_dtype(10**400, fallback=th.bfloat16) is th.bfloat16


@given(largest=st.integers(0, 2**70), signed=st.booleans())
def test_host_and_device_agree_on_the_smallest_dtype(largest, signed):
    found = utils.find_smallest_dtype(largest, signed)
    assert utils.torch_dtype_to_numpy(found) == np.dtype(host_utils.find_smallest_dtype(largest, signed))


@pytest.mark.parametrize(
    ("shape", "runs"),
    [
        (4, th.uint16),
        ((), th.uint16),
        ((0,), th.uint16),
        ((15, 17), th.uint16),
        ((84, 84, 4), th.uint16),
        ((65535,), th.uint16),
        ((65536,), th.uint32),
        ((3, 210, 160), th.uint32),
    ],
)
def test_runs_have_16_bits_or_as_many_as_they_need(shape, runs):
    assert utils.find_gpu_buffer_dtypes(shape) == {"elem_type": th.uint8, "runs_type": runs}


@pytest.mark.parametrize(("name", "dtype"), PAIRS.items())
def test_the_element_type_is_given_back_as_a_dtype_of_torch(name, dtype):
    for asked in (dtype, np.dtype(name)):
        assert utils.find_gpu_buffer_dtypes((8, 8), asked, "zstd")["elem_type"] is dtype


def test_a_codec_that_compiles_is_compiled_for_the_dtype_of_the_host(monkeypatch):
    asked = []

    def find_buffer_dtypes(*arguments):
        asked.append(arguments)
        return host_utils.find_buffer_dtypes(*arguments)

    monkeypatch.setattr(utils, "find_buffer_dtypes", find_buffer_dtypes)
    assert utils.find_gpu_buffer_dtypes((2, 3), th.int16, "zstd-3") == {"elem_type": th.int16, "runs_type": th.uint16}
    assert asked == [((2, 3), np.dtype(np.int16), "zstd-3")]


def test_shapes_and_dtypes_that_cannot_be_are_refused():
    with pytest.raises(ParameterError, match="no axis can be negative"):
        utils.find_gpu_buffer_dtypes((2, -3))
    with pytest.raises(ParameterError, match="bfloat16"):
        utils.find_gpu_buffer_dtypes((2, 3), th.bfloat16)


def test_what_the_published_package_had_here_is_here():
    assert utils.has_zstd is core_has_zstd
    assert utils.estimate_max_slot_bytes is size_estimation.estimate_max_slot_bytes
    assert utils.estimate_total_heap_bytes is size_estimation.estimate_total_heap_bytes
    assert all(callable(getattr(utils, name)) for name in utils.__all__)

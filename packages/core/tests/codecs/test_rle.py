"""The bytes of run lengths, as docs/rle-format.md says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.codecs.rle import end_dtype, word_dtype
from sb3_extra_buffers.errors import PayloadError


def payload(values):
    values = np.asarray(values)
    return bytes(bind("rle", CellSpec(values.dtype, values.size)).encode(values))


def test_ends_come_first_then_values():
    assert payload(np.array([7, 7, 7, 7, 9, 9], np.uint8)) == bytes([4, 6, 7, 9])
    assert payload(np.array([1] * 300 + [2] * 5, np.uint8)) == bytes([0x2C, 0x01, 0x31, 0x01, 1, 2])
    assert payload(np.array([258] * 10, "<u2")) == bytes([10, 2, 1])
    assert payload(np.zeros(70_000, np.uint8)) == bytes([0x70, 0x11, 0x01, 0x00, 0])


def test_a_cell_whose_runs_do_not_pay_is_stored_raw():
    assert payload(np.array([1, 2, 3], np.uint8)) == bytes([1, 2, 3])
    assert payload(np.array([5], np.uint8)) == bytes([5])
    assert payload(np.array([5, 5], np.uint8)) == bytes([5, 5])  # one run of two bytes saves nothing
    assert payload(np.array([5, 5, 5], np.uint8)) == bytes([3, 5])


def test_values_are_compared_bit_by_bit():
    zeros = np.array([0.0] * 5 + [-0.0] * 5, np.float32)
    assert payload(zeros) == bytes([5, 10]) + np.array([0.0, -0.0], np.float32).tobytes()
    nans = np.array([0x7FC00001] * 4 + [0x7FC00002] * 4, np.uint32).view(np.float32)
    assert payload(nans)[:2] == bytes([4, 8])


@pytest.mark.parametrize(
    ("count", "itemsize"), [(1, 1), (255, 1), (256, 2), (65535, 2), (65536, 4), (2**32 - 1, 4), (2**32, 8)]
)
def test_the_width_of_run_ends_follows_the_count(count, itemsize):
    assert end_dtype(count).itemsize == itemsize


def test_words_are_as_wide_as_elements_up_to_eight_bytes():
    assert [word_dtype(size).itemsize for size in (1, 2, 4, 8, 12, 16)] == [1, 2, 4, 8, 4, 8]


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        bytes([6]),
        bytes([4, 6, 7]),
        bytes([4, 4, 7, 9]),
        bytes([5, 4, 7, 9]),
        bytes([4, 7, 7, 9]),
        bytes([0, 6, 7, 9]),
        bytes([4, 5, 7, 9]),
        bytes(7),
    ],
    ids=["empty", "short", "odd", "standing", "falling", "beyond", "empty-run", "before-the-end", "too-long"],
)
def test_ends_that_do_not_rise_to_the_count_are_refused(damaged):
    codec = bind("rle", CellSpec(np.uint8, 6))
    with pytest.raises(PayloadError, match=f"rle: payload \\({len(damaged)} bytes\\) cannot be decoded"):
        codec.decode_into(damaged, bytearray(6))


cells = hnp.arrays(
    st.sampled_from(["?", "u1", "<i2", ">f4", "<f8"]),
    st.integers(1, 400),
    elements={"allow_nan": True, "allow_infinity": True},
    fill=st.nothing(),
).map(lambda array: np.repeat(array, np.arange(len(array)) % 5 + 1))


@given(cells)
def test_any_cell_comes_back(cell):
    codec = bind("rle", CellSpec(cell.dtype, cell.size))
    encoded = codec.encode(cell)
    out = np.empty_like(cell)
    codec.decode_into(encoded, out)
    assert out.tobytes() == cell.tobytes()
    assert len(encoded) <= cell.nbytes

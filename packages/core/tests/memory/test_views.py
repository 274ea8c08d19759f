"""Buffers are seen as bytes without a copy, or refused with the reason."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import CellMismatchError, HeapStateError
from sb3_extra_buffers.memory import FlatBytes, check_rows, view_bytes


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "<u2", ">u2", "e", "<f4", ">f8", "g", "u8"])
@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3), (1, 2, 3)])
def test_every_dtype_and_shape_is_seen_as_its_bytes_without_a_copy(dtype, shape):
    array = np.zeros(shape, dtype)
    view = view_bytes("me", "array", array, writable=True)
    assert (view.format, view.ndim, view.nbytes) == ("B", 1, array.nbytes)
    view[0] = 0x3F
    assert array.tobytes() == bytes(view)
    assert bytes(view)[0] == 0x3F


def test_bytes_like_objects_are_seen_as_they_are():
    assert bytes(view_bytes("me", "x", b"abc")) == b"abc"
    assert bytes(view_bytes("me", "x", memoryview(bytearray(b"abc")), writable=True)) == b"abc"


@pytest.mark.parametrize(
    ("buffer", "options", "message"),
    [
        (np.zeros(8, np.uint8)[::2], {}, "not C-contiguous"),
        (np.zeros((3, 4), order="F"), {}, "not C-contiguous.*ascontiguousarray"),
        ([1, 2], {}, "me: x is an object of type list, expected bytes"),
        (b"abcd", {"writable": True}, "read-only"),
    ],
)
def test_what_cannot_be_seen_as_bytes_is_refused_with_the_reason(buffer, options, message):
    with pytest.raises(CellMismatchError, match=message):
        view_bytes("me", "x", buffer, **options)


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((2, 5), np.uint8),
        np.zeros((3, 4), np.uint8),
        np.zeros(8, np.uint8),
        np.zeros((2, 4), np.int8),
        np.zeros((2, 8), np.uint8)[:, ::2],
        np.zeros((2, 4), np.uint8, order="F"),
    ],
)
def test_rows_of_another_shape_dtype_or_layout_are_refused(rows):
    with pytest.raises(CellMismatchError, match=r"expected C-contiguous uint8 of shape \(2, 4\)"):
        check_rows("me", "rows", rows, 2, 4)


def test_read_only_rows_are_refused_only_where_they_are_written():
    rows = np.zeros((2, 4), np.uint8)
    rows.flags.writeable = False
    check_rows("me", "rows", rows, None, 4)
    with pytest.raises(CellMismatchError, match="read-only"):
        check_rows("me", "rows", rows, None, 4, writable=True)


def test_flat_bytes_reads_inside_and_refuses_outside():
    data = np.arange(10, dtype=np.uint8)
    source = FlatBytes(data)
    assert bytes(source.view(3, 4)) == bytes([3, 4, 5, 6])
    assert bytes(source.view(10, 0)) == b""
    starts, lengths = np.array([0, 9]), np.array([10, 1])
    assert (source.addresses(starts, lengths) - np.uint64(data.ctypes.data)).tolist() == [0, 9]
    for start, length in ((-1, 1), (0, 11), (10, 1), (5, -1), (2**63 - 5, 99), (1, 2**63 - 1)):
        with pytest.raises(HeapStateError, match=f"read {length} bytes at {start}"):
            source.view(start, length)
        with pytest.raises(HeapStateError, match="the array holds bytes 0 to 10"):
            source.addresses(np.array([start]), np.array([length]))

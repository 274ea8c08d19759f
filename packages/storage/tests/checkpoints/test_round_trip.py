"""What was written is read: every dtype, every layout in memory, by us and by the official library."""

import tracemalloc

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.checkpoints.format import DTYPES
from sb3_extra_buffers.errors import FileContentError, ParameterError

DTYPES = list(DTYPES.values())
ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
)
NAMES = st.text(st.characters(blacklist_categories=("Cs",)), min_size=1).filter(lambda name: not name.startswith("__"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def same(found, expected):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype.newbyteorder("<")
    assert found.tobytes() == np.ascontiguousarray(expected).astype(found.dtype).tobytes()


@settings(max_examples=60, deadline=None)
@given(arrays=st.dictionaries(NAMES, ARRAYS, max_size=5), metadata=st.dictionaries(st.text(), JSON, max_size=3))
def test_arrays_and_metadata_come_back_as_they_were(tmp_path_factory, arrays, metadata):
    path = tmp_path_factory.mktemp("files") / "a.safetensors"
    nbytes = checkpoints.write(path, arrays, metadata, "test")
    with checkpoints.open_arrays(path, "test", verify=True) as found:
        assert set(found) == set(arrays)
        assert len(found) == len(arrays)
        for name, array in arrays.items():
            same(found[name], array)
            assert found[name].ctypes.data % found[name].itemsize == 0
            assert not found[name].flags.writeable
        assert found.metadata == metadata
        assert found.nbytes == nbytes == path.stat().st_size


def test_the_official_library_reads_the_file(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {str(dtype): rng.integers(0, 2, (3, 5)).astype(dtype) for dtype in DTYPES}
    arrays |= {"scalar": np.float32(3.5), "empty": np.empty((0, 4)), "large": rng.integers(0, 256, 3_000_001, np.uint8)}
    checkpoints.write(tmp_path / "a", arrays, {"who": "we"}, "test")
    found = safetensors.numpy.load_file(tmp_path / "a")
    assert set(found) == {*arrays, "__crc32__"}
    for name, array in arrays.items():
        same(found[name], array)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=">i4").reshape(3, 4),
        np.arange(24).reshape(4, 6)[::2, ::3],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        [[1, 2], [3, 4]],
        True,
    ],
    ids=["big-endian", "strided", "fortran", "list", "bool"],
)
def test_any_layout_in_memory_is_written_row_by_row(tmp_path, array):
    checkpoints.write(tmp_path / "a", {"x": array}, {}, "test")
    same(checkpoints.open_arrays(tmp_path / "a", verify=True)["x"], array)


def test_opening_a_large_file_reads_only_its_header(tmp_path):
    checkpoints.write(tmp_path / "a", {"x": np.zeros(1 << 26, np.uint8)}, {}, "test")
    tracemalloc.start()
    try:
        found = checkpoints.open_arrays(tmp_path / "a")
        found["x"][12345]
        assert tracemalloc.get_traced_memory()[1] < 1 << 17
    finally:
        tracemalloc.stop()


def test_arrays_outlive_close_and_replacement(tmp_path):
    checkpoints.write(tmp_path / "a", {"x": np.arange(5)}, {}, "test")
    found = checkpoints.open_arrays(tmp_path / "a")
    array = found["x"]
    found.close()
    checkpoints.write(tmp_path / "a", {"x": np.arange(9)}, {}, "test")
    assert array.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="closed"):
        found["x"]


def test_another_kind_is_refused_by_name(tmp_path):
    checkpoints.write(tmp_path / "a", {}, {}, "recording")
    with pytest.raises(FileContentError, match="expected the kind 'checkpoint', found the kind 'recording'"):
        checkpoints.open_arrays(tmp_path / "a", "checkpoint")


@pytest.mark.parametrize(
    ("arrays", "metadata"),
    [
        ({"x": np.array(["text"])}, {}),
        ({"x": np.array([object()])}, {}),
        ({"x": np.complex64(1)}, {}),
        ({"__x": 1}, {}),
        ({"": 1}, {}),
        ({}, {"x": object()}),
        ({}, {"x": float("nan")}),
    ],
    ids=["text", "objects", "complex", "reserved", "nameless", "no JSON", "NaN"],
)
def test_what_the_format_cannot_hold_is_refused_before_anything_is_written(tmp_path, arrays, metadata):
    with pytest.raises(ParameterError):
        checkpoints.write(tmp_path / "a", arrays, metadata, "test")
    assert not list(tmp_path.iterdir())

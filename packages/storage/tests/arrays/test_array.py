"""``CompressedArray`` is made like an array, indexed like one, and says what it takes."""

import copy
import pickle

import numpy as np
import pytest

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.errors import HeapFullError, HeapStateError, ObservationError, ParameterError
from sb3_extra_buffers.stores import RawStore

BUILT_IN = ("none", "rle", "gzip")


def filled(shape=(4, 2), dtype=np.uint8, obs_shape=(3,), **storage):
    array = CompressedArray(shape, dtype, obs_shape, **storage)
    full = np.arange(array.size).reshape(array.shape).astype(dtype)
    array[...] = full
    return array, full


@pytest.mark.parametrize("codec", ["auto", *BUILT_IN])
def test_an_array_is_zero_until_written(codec):
    array = CompressedArray((3, 2), np.float32, (70,), compression_method=codec)
    assert (array[1, 1] == np.zeros(70, np.float32)).all()
    array[1] = 5
    assert np.asarray(array).sum() == 5 * 2 * 70


def test_it_describes_itself_as_an_array_does():
    array = CompressedArray((5, 2), np.int16, (3, 4))
    assert (array.shape, array.ndim, array.size, array.dtype) == ((5, 2, 3, 4), 4, 120, np.int16)
    assert (len(array), array.nbytes) == (5, 240)
    assert CompressedArray(7).shape == (7,)
    assert CompressedArray(np.int64(7), obs_shape=2).shape == (7, 2)


def test_it_says_what_it_is_stored_with_and_how_much_that_takes():
    array = CompressedArray(100, np.uint8, (40, 40), compression_method="gzip3")
    assert array.nbytes_stored == 0
    array[:] = 7
    assert 100 < array.nbytes_stored < array.nbytes / 10
    assert array.codec == "gzip/3"
    assert repr(array) == "<CompressedArray (100, 40, 40) of uint8, gzip/3>"
    assert array.store.cells == 100


def test_by_default_the_codec_is_chosen_by_what_is_stored_first():
    array = CompressedArray(10, np.uint8, (40, 40))
    assert array.codec.startswith("auto (not yet chosen, until 5 observations")
    array[:5] = 1
    assert "chosen: makes the first observations" in array.codec


@pytest.mark.parametrize("shape", [(), 0, (3, 0), -1, (2, -1), 1.5, (2, "x"), True])
def test_a_shape_without_cells_is_refused(shape):
    with pytest.raises(ParameterError, match="CompressedArray: shape="):
        CompressedArray(shape, np.uint8, (3,))


@pytest.mark.parametrize("obs_shape", [-1, (2, -1), (1.5,), "ab"])
def test_a_cell_shape_of_anything_but_integers_is_refused(obs_shape):
    with pytest.raises(ParameterError, match="CompressedArray: obs_shape="):
        CompressedArray(3, np.uint8, obs_shape)


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ({"compression_method": "gzip99"}, "level=99 is not allowed; levels: 0 to 9"),
        ({"compression_method": "gzip", "compression_kwargs": {"foo": 1}}, "foo=1 is not allowed"),
        ({"heap": "ring"}, "capacity=None is not allowed; it must be given"),
        ({"dtypes": np.complex64}, "it must be a plain bool, integer or float dtype"),
    ],
)
def test_what_cannot_be_stored_as_asked_is_refused_when_the_array_is_made(storage, message):
    with pytest.raises(ParameterError, match=message):
        CompressedArray(3, np.uint8, (300,), **storage)


def test_dictionaries_of_the_caller_are_not_changed():
    kwargs, heap_kwargs, dtypes = {"compresslevel": 3}, {"capacity": 10_000}, {"elem_type": np.uint8, "runs_type": "u2"}
    CompressedArray(
        3,
        np.int64,
        (300,),
        dtypes=dtypes,
        compression_method="gzip",
        compression_kwargs=kwargs,
        decompression_kwargs=dtypes,
        heap="ring",
        heap_kwargs=heap_kwargs,
    )
    assert (kwargs, heap_kwargs) == ({"compresslevel": 3}, {"capacity": 10_000})
    assert dtypes == {"elem_type": np.uint8, "runs_type": "u2"}


@pytest.mark.parametrize("codec", BUILT_IN)
def test_what_is_read_is_a_new_writable_array(codec):
    array, full = filled(compression_method=codec)
    for key in (0, (0, 1), slice(None), ..., [0, 1]):
        found = array[key]
        found[...] = 99
    assert (np.asarray(array) == full).all()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (0, 256, "the value 256 in it"),
        (0, -1, "the value -1 in it"),
        (0, 0.5, "the value 0.5 in it"),
        (slice(0, 2), np.nan, "the value nan in it"),
        ([1, 1], [[[1, 2, 3]], [[4, 5, 600]]], "the value 600 in it"),
        ((0, 0, 0), 300, "the value 300 in it"),
        (0, "text", "expected numbers"),
        (0, np.zeros((3, 3), np.uint8), r"of shape \(3, 3\), expected what can be broadcast to \(2, 3\)"),
        (0, np.zeros(7, np.uint8), r"of shape \(7,\)"),
        ((0, 0, slice(0, 2)), [1, 2, 3], r"of shape \(3,\), expected what can be broadcast to \(2,\)"),
        (slice(0, 0), np.zeros((2, 5, 3), np.uint8), r"of shape \(2, 5, 3\)"),
    ],
)
@pytest.mark.parametrize("codec", BUILT_IN)
def test_a_value_that_does_not_fit_is_refused_and_changes_nothing(codec, key, value, message):
    array, full = filled(compression_method=codec)
    with pytest.raises(ObservationError, match=f"CompressedArray: value is .*{message}"):
        array[key] = value
    assert (np.asarray(array) == full).all()
    array[0] = full[0] = 7
    assert (np.asarray(array) == full).all()


@pytest.mark.parametrize("key", [0, (0, 0), ..., [0, 0]])
@pytest.mark.parametrize("obs_shape", [(), (3,)])
def test_a_value_that_the_stored_dtype_cannot_hold_is_refused_and_changes_nothing(key, obs_shape):
    array, full = filled(dtype=np.int64, obs_shape=obs_shape, dtypes={"elem_type": np.uint8})
    assert array.dtype == np.int64
    with pytest.raises(
        ObservationError, match=r"int64 with the value 300 in it .* expected uint8: integers from 0 to 255"
    ):
        array[key] = 300
    assert np.asarray(array).dtype == np.int64
    assert (np.asarray(array) == full).all()
    array[key] = full[key] = 255
    assert (np.asarray(array) == full).all()


def test_a_narrow_dtype_is_what_is_stored():
    array, _ = filled((5, 1), np.int64, (10,), dtypes=np.uint8, compression_method="none")
    assert array.nbytes_stored == 50
    assert array.nbytes == 400


def test_special_floats_survive_every_codec_bit_by_bit():
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38, 0.1], np.float32)
    for codec in BUILT_IN:
        array = CompressedArray(2, np.float32, (8,), compression_method=codec)
        array[1] = special
        assert array[1].tobytes() == special.tobytes()


@pytest.mark.parametrize("dtype", [">i4", "<i4", ">f8", np.float16, np.uint64])
def test_byte_orders_and_rare_dtypes_are_kept(dtype):
    for codec in BUILT_IN:
        array, full = filled(dtype=dtype, compression_method=codec)
        assert array.dtype == array[0].dtype == np.dtype(dtype)
        assert (np.asarray(array) == full).all()


def test_a_cell_without_elements_takes_any_assignment_and_no_memory():
    array = CompressedArray((4, 2), np.float32, (0, 3))
    array[1] = 5
    array[...] = np.zeros((4, 2, 0, 3))
    assert array[1].shape == (2, 0, 3)
    assert array[:, :, :, 1].shape == (4, 2, 0)
    assert (array.nbytes_stored, array.codec, array.store) == (0, "none (cells are empty)", None)
    assert pickle.loads(pickle.dumps(array)).shape == (4, 2, 0, 3)
    array.clear()


def test_numpy_reads_it_in_any_dtype_but_never_without_a_copy():
    array, full = filled()
    assert np.asarray(array).dtype == np.uint8
    assert np.asarray(array, np.float64).dtype == np.float64
    assert (np.add(array, 1) == full + 1).all()
    with pytest.raises(ValueError, match="without a copy"):
        array.__array__(copy=False)


@pytest.mark.parametrize("duplicate", [CompressedArray.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
@pytest.mark.parametrize("codec", ["auto", *BUILT_IN])
def test_a_copy_is_independent(duplicate, codec):
    array, full = filled((4, 2), np.float32, (80,), compression_method=codec)
    twin = duplicate(array)
    twin[0] = 7
    array[1] = 9
    assert (np.asarray(twin)[1:] == full[1:]).all()
    assert (twin[0] == 7).all()
    full[1] = 9
    assert (np.asarray(array) == full).all()
    assert (twin.codec, twin.dtype) == (array.codec, array.dtype)


def test_an_array_that_was_never_written_pickles_and_chooses_later():
    twin = pickle.loads(pickle.dumps(CompressedArray(10, np.uint8, (40, 40))))
    twin[3] = 5
    assert "chosen" in twin.codec
    assert (twin[3] == 5).all()


def test_the_pickle_holds_payloads_and_no_room():
    array = CompressedArray(1000, np.uint8, (100, 100), compression_method="gzip")
    array[::2] = 7
    assert len(pickle.dumps(array)) < array.nbytes_stored + 30_000
    assert array.nbytes_stored < array.nbytes / 50


def test_clearing_makes_it_zero_and_usable():
    for codec in BUILT_IN:
        array, full = filled(compression_method=codec)
        array.clear()
        assert array.nbytes_stored == 0
        assert not np.asarray(array).any()
        array[...] = full
        assert (np.asarray(array) == full).all()


@pytest.mark.parametrize("heap", ["ring", "mmap"])
def test_the_heap_is_the_one_that_was_asked_for(heap):
    array, full = filled(heap=heap, heap_kwargs={"capacity": 5000}, compression_method="rle")
    assert (np.asarray(array) == full).all()
    assert type(array.store._heap).__name__.lower().startswith(heap)


def test_reading_what_a_small_ring_dropped_is_an_error_and_the_rest_is_there():
    array = CompressedArray(10, np.uint8, (100,), compression_method="none", heap="ring", heap_kwargs={"capacity": 350})
    for cell in range(10):
        array[cell] = cell
    with pytest.raises(HeapStateError, match=r"cannot read cell 0: it was evicted .* larger capacity"):
        array[0]
    assert (array[7:] == np.arange(7, 10).reshape(3, 1)).all()


def test_a_row_that_a_ring_cannot_hold_changes_nothing():
    array = CompressedArray(9, np.uint8, (100,), compression_method="none", heap="ring", heap_kwargs={"capacity": 350})
    array[1] = 5
    with pytest.raises(HeapFullError, match="400 bytes were needed at once, the capacity is 350 bytes"):
        array[2:6] = 7
    assert (array[1] == 5).all()
    array[2:4] = 7
    assert (array[3] == 7).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_does_not_change_what_is_read(threads):
    array, full = filled((20, 3), np.uint8, (500,), compression_method="gzip", threads=threads)
    assert (np.asarray(array) == full).all()


def test_a_row_goes_to_the_store_as_it_is_only_if_nothing_has_to_be_done():
    array = CompressedArray((4, 2), np.uint8, (3,))
    row = np.ones((2, 3), np.uint8)
    assert array.takes(row)
    for other in (row.astype(np.int8), row[:1], np.asfortranarray(row), row.tolist(), row[..., np.newaxis]):
        assert not array.takes(other)
        array[0] = np.asarray(other).reshape(-1, 3)
        assert (array[0] == 1).all()
    narrow = CompressedArray((4, 2), np.int64, (3,), dtypes=np.uint8)
    assert not narrow.takes(np.ones((2, 3), np.int64))


def test_what_was_assigned_may_change_afterwards():
    for codec in BUILT_IN:
        array, row = CompressedArray((4, 2), np.uint8, (3,), compression_method=codec), np.ones((2, 3), np.uint8)
        array[0] = row
        row[:] = 9
        assert (array[0] == 1).all()


def test_an_array_can_stand_on_a_store_that_exists():
    store = RawStore(6, 4)
    array = CompressedArray.over(store, np.arange(6).reshape(3, 2)[::-1], (2,), np.int16)
    array[0] = [[1, 2], [3, 4]]
    assert array.store is store
    found = np.empty((2, 4), np.uint8)
    store.read(np.array([4, 5]), found)
    assert found.view(np.int16).tolist() == [[1, 2], [3, 4]]


def test_values_can_be_tried_without_being_stored():
    array = CompressedArray(3, np.int64, (2,), dtypes=np.uint8)
    assert array.fit("Owner", "obs", [1.0, 2.0]).dtype == np.int64
    with pytest.raises(ObservationError, match=r"Owner: obs is .* 300 .*uint8"):
        array.fit("Owner", "obs", [1, 300])
    assert array.nbytes_stored == 0


def test_what_an_array_gave_does_not_change_when_it_gives_more():
    array = CompressedArray((64,), np.uint8, (4096,), compression_method="gzip")
    content = np.random.default_rng(0).integers(0, 256, (64, 4096), np.uint8)
    array[:] = content
    rng = np.random.default_rng(1)
    picks = [rng.integers(0, 64, 32) for _ in range(6)]
    found = [array[pick] for pick in picks]
    for pick, batch in zip(picks, found):
        np.testing.assert_array_equal(batch, content[pick])
    assert array.nbytes_for_batches == 2 * 32 * 4096

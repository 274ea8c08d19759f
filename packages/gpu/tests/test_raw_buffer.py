"""Bytes on a device: what is written is what is read, and nothing beside it."""

import copy
import io
import pickle

import numpy as np
import pytest
import torch as th
from hypothesis import given
from hypothesis import strategies as st

from sb3_extra_buffers.errors import DeviceError, HeapFullError, ParameterError
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer, read_at, write_at

DTYPES = [
    *(th.bool, th.uint8, th.int8, th.uint16, th.int16, th.uint32, th.int32, th.uint64, th.int64),
    *(th.float16, th.bfloat16, th.float32, th.float64, th.complex64),
]


def filled(size: int) -> tuple[RawBuffer, bytearray]:
    """A buffer with known content, and that content."""
    content = bytearray((7 * index + 3) % 251 for index in range(size))
    buffer = RawBuffer(size)
    buffer.bytes.copy_(th.frombuffer(bytearray(content), dtype=th.uint8) if size else th.empty(0, dtype=th.uint8))
    return buffer, content


def content_of(buffer: RawBuffer) -> bytes:
    return buffer.bytes.cpu().numpy().tobytes()


def tensor_of(data: bytes, dtype: th.dtype) -> th.Tensor:
    return th.frombuffer(bytearray(data), dtype=th.uint8).view(dtype)


def data_of(tensor: th.Tensor) -> bytes:
    return tensor.contiguous().view(th.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_start_and_length_count_elements_not_bytes(dtype):
    buffer, content = filled(128)
    itemsize = dtype.itemsize
    data = bytes(3 * itemsize) if dtype is th.bool else bytes(range(200, 200 + 3 * itemsize))
    buffer.write_bytes((2, 3), tensor_of(data, dtype))
    content[2 * itemsize : 5 * itemsize] = data
    assert content_of(buffer) == content
    found = buffer.read_bytes((2, 3), dtype)
    assert found.dtype is dtype
    assert found.shape == (3,)
    assert data_of(found) == data


def test_what_was_read_is_a_live_view():
    buffer, _ = filled(16)
    found = buffer.read_bytes((1, 2), th.int32)
    buffer.write_bytes((1, 2), th.tensor([-5, 123456], dtype=th.int32))
    assert found.tolist() == [-5, 123456]


@pytest.mark.parametrize(
    "tensor",
    [
        th.arange(12, dtype=th.int16).reshape(3, 4),
        th.arange(12, dtype=th.int16).reshape(4, 3).T,
        th.arange(24, dtype=th.int16)[::2],
        th.tensor(9, dtype=th.int16),
        th.arange(6, dtype=th.float32).requires_grad_(),
    ],
    ids=["matrix", "transposed", "strided", "scalar", "with gradient"],
)
def test_tensors_of_any_layout_are_written_in_their_logical_order(tensor):
    buffer, _ = filled(64)
    buffer.write_bytes((0, tensor.numel()), tensor)
    assert buffer.read_bytes((0, tensor.numel()), tensor.dtype).tolist() == tensor.detach().flatten().tolist()


def test_reading_into_a_tensor_fills_its_beginning_and_keeps_its_end():
    buffer, content = filled(32)
    flat = th.full((5,), -1, dtype=th.int16)
    buffer.read_into((2, 3), flat)
    assert flat.tolist() == [*np.frombuffer(content, np.int16)[2:5].tolist(), -1, -1]
    matrix = th.full((2, 2), -1, dtype=th.int16)
    buffer.read_into((0, 3), matrix)
    assert matrix.flatten().tolist() == [*np.frombuffer(content, np.int16)[:3].tolist(), -1]
    every_other = th.full((6,), -1, dtype=th.int16)
    buffer.read_into((1, 3), every_other[::2])
    assert every_other[::2].tolist() == np.frombuffer(content, np.int16)[1:4].tolist()
    assert every_other[1::2].tolist() == [-1, -1, -1]
    assert content_of(buffer) == content


def test_reading_into_what_cannot_be_filled_is_refused():
    buffer, _ = filled(32)
    with pytest.raises(ParameterError, match="one-dimensional or contiguous"):
        buffer.read_into((0, 4), th.zeros(2, 3).T)
    with pytest.raises(ParameterError, match="the tensor has only 3 elements"):
        buffer.read_into((0, 4), th.zeros(3))


@given(source=st.integers(0, 40), target=st.integers(0, 40), length=st.integers(0, 24))
def test_regions_may_overlap(source, target, length):
    buffer, content = filled(64)
    buffer.copy_region(source, length, target)
    content[target : target + length] = bytes(content[source : source + length])
    assert content_of(buffer) == content


@given(source=st.integers(0, 20), target=st.integers(0, 20), length=st.integers(0, 12))
def test_a_view_of_the_buffer_can_be_written_to_and_read_into_another_place(source, target, length):
    buffer, content = filled(64)
    buffer.write_bytes((target, length), buffer.read_bytes((source, length), th.int16))
    moved = bytearray(content)
    moved[2 * target : 2 * (target + length)] = content[2 * source : 2 * (source + length)]
    assert content_of(buffer) == moved
    again, content = filled(64)
    again.read_into((source, length), again.read_bytes((target, length), th.int16))
    assert content_of(again) == moved


@given(
    start=st.integers(0, 30),
    offset=st.integers(0, 15),
    count=st.integers(0, 4),
    dtype=st.sampled_from([dtype for dtype in DTYPES if dtype is not th.bool]),
    seed=st.integers(0, 255),
)
def test_any_byte_can_be_the_first(start, offset, count, dtype, seed):
    buffer, content = filled(96)
    data = np.random.default_rng(seed).bytes(count * dtype.itemsize)
    tensor = tensor_of(data, dtype) if count else th.empty(0, dtype=dtype)
    write_at(buffer, start, offset, tensor)
    content[start + offset : start + offset + len(data)] = data
    assert content_of(buffer) == content
    found = read_at(buffer, start, offset, count, dtype)
    assert found.dtype is dtype
    assert found.shape == (count,)
    assert data_of(found) == data


def test_an_aligned_place_is_read_as_a_view_and_another_as_a_copy():
    buffer, content = filled(32)
    aligned, shifted = read_at(buffer, 4, 4, 2, th.int32), read_at(buffer, 4, 5, 2, th.int32)
    before = shifted.tolist()
    assert before == np.frombuffer(content[9:17], np.int32).tolist()
    buffer.bytes.zero_()
    assert aligned.tolist() == [0, 0]
    assert shifted.tolist() == before != [0, 0]


@pytest.mark.parametrize(
    ("call", "place"),
    [
        (lambda buffer: buffer.write_bytes((7, 2), th.zeros(2, dtype=th.int16)), "bytes 14 to 18"),
        (lambda buffer: buffer.write_bytes((-1, 1), th.zeros(1, dtype=th.int16)), "bytes -2 to 0"),
        (lambda buffer: buffer.read_bytes((3, 2), th.float32), "bytes 12 to 20"),
        (lambda buffer: buffer.read_bytes((3, -1), th.float32), "bytes 12 to 8"),
        (lambda buffer: buffer.read_bytes((17, 0), th.uint8), "bytes 17 to 17"),
        (lambda buffer: buffer.read_into((2, 3), th.zeros(3)), "bytes 8 to 20"),
        (lambda buffer: buffer.copy_region(0, 9, 8), "bytes 8 to 17"),
        (lambda buffer: buffer.copy_region(9, 8, 0), "bytes 9 to 17"),
        (lambda buffer: write_at(buffer, 8, 6, th.zeros(1)), "bytes 14 to 18"),
        (lambda buffer: read_at(buffer, 8, 6, 1, th.float32), "bytes 14 to 18"),
    ],
)
def test_places_outside_are_refused_and_nothing_is_written(call, place):
    buffer, content = filled(16)
    with pytest.raises(ParameterError, match=f"'{place}' is not allowed; the buffer has the bytes 0 to 16"):
        call(buffer)
    assert content_of(buffer) == content


def test_a_tensor_of_another_length_is_refused():
    buffer, content = filled(16)
    for count in (1, 3):
        with pytest.raises(ParameterError, match=f"room for 2 elements of torch.int16, {count} were given"):
            buffer.write_bytes((0, 2), th.ones(count, dtype=th.int16))
    assert content_of(buffer) == content


@pytest.mark.parametrize("dtype", [np.uint8, "uint8", None])
def test_only_dtypes_of_torch_can_be_read(dtype):
    with pytest.raises(ParameterError, match="it must be a dtype of torch"):
        RawBuffer(8).read_bytes((0, 1), dtype)


@pytest.mark.parametrize("size", [-1, 2.5, "8", None, True])
def test_a_size_is_a_number_of_bytes(size):
    with pytest.raises(ParameterError, match="a number of bytes, at least 0"):
        RawBuffer(size)


@pytest.mark.parametrize("device", ["nonsense", "cuda:77", "meta"])
def test_a_device_that_is_not_there_or_keeps_nothing_is_refused(device):
    for call in (lambda: RawBuffer(8, device), lambda: RawBuffer(8).to(device)):
        with pytest.raises(DeviceError, match=f"Device '{device}'"):
            call()


def test_a_size_that_cannot_be_had_says_so():
    with pytest.raises(HeapFullError, match=f"could not allocate {2**60} bytes"):
        RawBuffer(2**60)


def test_it_says_what_it_is():
    buffer = RawBuffer(np.int64(24), device=th.device("cpu"))
    assert (buffer.size, len(buffer), buffer.device) == (24, 24, th.device("cpu"))
    assert repr(buffer) == "RawBuffer(24, device='cpu')"
    assert isinstance(buffer.buffer, th.UntypedStorage)
    assert buffer.buffer.nbytes() == 24
    assert buffer.buffer.data_ptr() == buffer.bytes.data_ptr()


def saved_by_torch(buffer: RawBuffer) -> RawBuffer:
    file = io.BytesIO()
    th.save(buffer, file)
    return th.load(io.BytesIO(file.getvalue()), weights_only=False)


@pytest.mark.parametrize("size", [0, 1, 40])
@pytest.mark.parametrize(
    "duplicate",
    [lambda buffer: pickle.loads(pickle.dumps(buffer)), copy.deepcopy, copy.copy, saved_by_torch],
    ids=["pickle", "deepcopy", "copy", "torch"],
)
def test_copies_have_the_same_bytes_in_memory_of_their_own(duplicate, size):
    buffer, content = filled(size)
    copied = duplicate(buffer)
    assert content_of(copied) == content
    assert copied.device == buffer.device
    copied.write_bytes((0, size), th.full((size,), 255, dtype=th.uint8))
    assert content_of(copied) == b"\xff" * size
    assert content_of(buffer) == content


def test_bytes_that_travel_outside_of_the_pickle_can_be_written_to_afterwards():
    buffer, content = filled(40)
    outside = []
    pickled = pickle.dumps(buffer, protocol=5, buffer_callback=outside.append)
    loaded = pickle.loads(pickled, buffers=[bytes(one.raw()) for one in outside])
    assert outside
    assert content_of(loaded) == content
    loaded.write_bytes((0, 1), th.tensor([1.5]))
    assert loaded.read_bytes((0, 1), th.float32).item() == 1.5


def test_what_was_saved_on_a_device_that_is_not_here_is_loaded_to_the_cpu():
    buffer, content = filled(24)
    state = {**buffer.__getstate__(), "device": "cuda:77"}
    loaded = RawBuffer.__new__(RawBuffer)
    with pytest.warns(UserWarning, match="'cuda:77'.*on the CPU now"):
        loaded.__setstate__(state)
    assert content_of(loaded) == content
    assert loaded.device == th.device("cpu")


def test_a_buffer_that_is_there_already_is_not_copied():
    buffer, _ = filled(8)
    assert buffer.to("cpu") is buffer


def test_moving_takes_the_bytes_along(monkeypatch):
    # There may be one device only, so the buffer is told that it is elsewhere.
    buffer, content = filled(24)
    monkeypatch.setattr(RawBuffer, "device", property(lambda buffer: th.device("meta")))
    moved = buffer.to("cpu")
    monkeypatch.undo()
    assert moved is not buffer
    assert content_of(moved) == content
    moved.bytes.zero_()
    assert content_of(buffer) == content

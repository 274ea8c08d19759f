"""The stores of the published package: one observation at a time."""

import copy
import pickle

import numpy as np
import pytest
import torch as th

from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import BufferStateError, HeapFullError, ObservationError, ParameterError
from sb3_extra_buffers.gpu_buffers import (
    BaseGpuBuffer,
    DenseObservationStore,
    GpuCompressionMethod,
    GpuCompressionMethods,
    RawBuffer,
    RawObservationStore,
    SharedRawHeap,
    SlotMetadata,
    create_observation_store,
)

NAMES = [*codecs.names(), "gzip/1"]


def observations(count, dtype, length=50, seed=0):
    random = np.random.default_rng(seed)
    return [th.from_numpy(np.sort(random.integers(0, 9, length)).astype(dtype)) for _ in range(count)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_what_is_written_is_read(name, dtype):
    elem_type = getattr(th, dtype)
    store = create_observation_store(name, 4, 3, 50, elem_type, "cpu")
    assert isinstance(store, DenseObservationStore if name == "none" else RawObservationStore)
    for lap in range(2):
        shown = observations(12, dtype, seed=lap)
        for number, value in enumerate(shown):
            store.write(number // 3, number % 3, value)
        for number, value in enumerate(shown):
            found = store.read(number // 3, number % 3)
            assert found.dtype == elem_type
            assert th.equal(found, value)
            found.zero_()  # it is a copy
        flat = store.flatten()
        for number in range(12):
            env, pos = divmod(number, 4)
            assert th.equal(flat[number], shown[pos * 3 + env])
            assert th.equal(store.read_flat(number), shown[pos * 3 + env])


def test_fields_share_a_heap():
    heap = SharedRawHeap(2 * 12, 1 << 14, "cpu")
    stores = [
        create_observation_store("rle", 4, 3, 50, th.uint8, "cpu", field, shared_heap=heap, n_fields=2)
        for field in range(2)
    ]
    assert [store.cell_id(1, 2) for store in stores] == [5, 17]
    shown = [observations(12, "uint8", seed=field) for field in range(2)]
    for number in range(12):
        for store, values in zip(stores, shown):
            store.write(number // 3, number % 3, values[number])
    stores[0].compact()  # others share it: nothing happens
    for store, values in zip(stores, shown):
        assert all(th.equal(store.read(number // 3, number % 3), values[number]) for number in range(12))


def test_noise_fits_into_the_estimated_heap():
    store = create_observation_store("rle", 6, 2, 28224, th.uint8, "cpu")
    noise = th.from_numpy(np.random.default_rng(0).integers(256, size=(12, 28224), dtype=np.uint8))
    for number, value in enumerate(noise):
        store.write(number // 2, number % 2, value)
    store.compact()
    assert all(th.equal(store.read(number // 2, number % 2), value) for number, value in enumerate(noise))


def test_callables_of_your_own():
    def compress(tensor, buffer, byte_start):
        buffer.bytes[byte_start : byte_start + 50] = tensor + 1
        return SlotMetadata(byte_start, 0, 0, 0, 50)

    def decompress(buffer, metadata, elem_type, runs_type, arr_configs):
        assert (elem_type, runs_type, arr_configs["size"]) == (th.uint8, th.uint16, 50)
        return buffer.bytes[metadata.byte_start : metadata.byte_start + metadata.payload_bytes] - 1

    store = create_observation_store("rle", 4, 3, 50, th.uint8, "cpu", compress=compress, decompress=decompress)
    (value,) = observations(1, "uint8")
    store.write(3, 2, value)
    assert th.equal(store.read(3, 2), value)


@pytest.mark.parametrize("name", ["none", "rle"])
def test_what_is_refused(name):
    store = create_observation_store(name, 4, 3, 50, th.uint8, "cpu")
    (value,) = observations(1, "uint8")
    for place, word in (((4, 0), "pos"), ((-1, 0), "pos"), ((0, 3), "env_idx")):
        with pytest.raises(ParameterError, match=word):
            store.write(*place, value)
        with pytest.raises(ParameterError, match=word):
            store.read(*place)
    with pytest.raises(ObservationError, match="49 elements"):
        store.write(0, 0, value[1:])
    with pytest.raises(ObservationError, match="values of"):
        store.write(0, 0, value.to(th.int16) + 300)


def test_what_was_never_written_or_dropped():
    heap = SharedRawHeap(12, 160, "cpu")
    store = create_observation_store("gzip", 4, 3, 50, th.uint8, "cpu", shared_heap=heap)
    with pytest.raises(BufferStateError, match="never written"):
        store.read(0, 0)
    for number, value in enumerate(observations(12, "uint8")):
        store.write(number // 3, number % 3, value)
    with pytest.raises(BufferStateError, match="dropped to make room"):
        store.read(0, 0)
    with pytest.raises(HeapFullError):
        SharedRawHeap(12, 16, "cpu").ensure_space(17)


@pytest.mark.parametrize("name", NAMES)
def test_a_base_by_itself_configures_callables(name):
    base = BaseGpuBuffer(name, flatten_config={"size": 50, "dtype": th.uint8})
    for twin in (base, copy.deepcopy(base), pickle.loads(pickle.dumps(base))):
        buffer, (value,) = RawBuffer(400), observations(1, "uint8")
        metadata = twin.compress(value, buffer, 32)
        assert metadata.byte_start == 32
        assert th.equal(twin.decompress(buffer, metadata, th.uint8, th.uint16, twin.flatten_config), value)


def test_metadata_of_runs_says_where_they_are():
    buffer, base = RawBuffer(400), BaseGpuBuffer("rle", flatten_config={"size": 50})
    metadata = base.compress(th.from_numpy(np.repeat(np.array([7, 9, 1], np.uint8), [20, 25, 5])), buffer, 16)
    assert metadata == SlotMetadata(byte_start=16, pos_runs=0, pos_elem=3, run_length=3, payload_bytes=6)
    assert buffer.bytes[16:22].tolist() == [20, 45, 50, 7, 9, 1]


def test_names():
    assert GpuCompressionMethods is GpuCompressionMethod
    assert GpuCompressionMethod._fields == ("compress", "decompress")
    assert not hasattr(BaseGpuBuffer(), "compress")
    with pytest.raises(ParameterError, match="a codec must be named"):
        BaseGpuBuffer("auto")

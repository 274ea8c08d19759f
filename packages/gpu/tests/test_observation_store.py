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
    devices,
)

NAMES = [*codecs.names(), "gzip/1"]


def observations(count, dtype, length=50, seed=0):
    random = np.random.default_rng(seed)
    return [th.from_numpy(np.sort(random.integers(0, 9, length)).astype(dtype)) for _ in range(count)]


def flattened(store, entry):
    """An observation, from what ``flatten`` says of it."""
    if isinstance(store, DenseObservationStore):
        return entry
    configs = {"size": store._flat_len}
    return store._decompress(store.shared_heap.buffer, entry, store._elem_type, th.uint16, configs)


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
            assert th.equal(flattened(store, flat[number]), shown[pos * 3 + env])
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


def payloads_of(random, length):
    """Noise, which does not compress, and a few runs, which do: payloads that grow and shrink."""
    while True:
        yield th.from_numpy(random.integers(256, size=length, dtype=np.uint8))
        yield th.from_numpy(np.sort(random.integers(0, 90, length).astype(np.uint8)))


@pytest.mark.parametrize("name", ["rle", "gzip"])
def test_what_is_rewritten_in_any_order_drives_nothing_out_of_a_heap_that_is_large_enough(name):
    # Room for the largest payloads of all cells, and not for one more: 1000 bytes at a multiple of 16.
    heap = SharedRawHeap(8, 8 * 1008, "cpu", on_full="evict")
    store = create_observation_store(name, 4, 2, 1000, th.uint8, "cpu", shared_heap=heap)
    random = np.random.default_rng(0)
    values, written = payloads_of(random, 1000), {}
    for number in [*range(8), *random.integers(0, 8, 60).tolist(), *[7] * 9]:
        written[number] = next(values)
        store.write(number // 2, number % 2, written[number])
        assert all(th.equal(store.read(cell // 2, cell % 2), value) for cell, value in written.items())
    assert heap.evicted.cells == 0


def test_laps_with_payloads_that_grow_lose_nothing():
    store = create_observation_store("rle", 4, 1, 28224, th.uint8, "cpu")
    random = np.random.default_rng(0)
    values, written = payloads_of(random, 28224), {}
    for step in range(15):
        number = step % 4
        noise, runs = next(values), next(values)
        written[number] = runs if step % 5 == 0 else noise
        store.write(number, 0, written[number])
        assert all(th.equal(store.read(cell, 0), value) for cell, value in written.items())
    assert store.shared_heap.evicted.cells == 0


def test_a_heap_that_refuses_keeps_what_it_has():
    heap = SharedRawHeap(4, 2 * 1008, "cpu", on_full="raise")
    store = create_observation_store("rle", 4, 1, 1000, th.uint8, "cpu", shared_heap=heap)
    values = [next(payloads_of(np.random.default_rng(seed), 1000)) for seed in range(3)]
    for number in range(2):
        store.write(number, 0, values[number])
    with pytest.raises(HeapFullError, match="larger heap_bytes"):
        store.write(2, 0, values[2])
    assert all(th.equal(store.read(number, 0), values[number]) for number in range(2))
    store.write(1, 0, values[2])  # what it replaces makes room for it
    assert th.equal(store.read(1, 0), values[2])


@pytest.mark.parametrize("is_host", [True, False], ids=["host", "torch"])
@pytest.mark.parametrize("name", ["none", "rle", "gzip"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_observations_with_a_stride_are_stored_as_they_look(name, is_host, dtype, monkeypatch):
    monkeypatch.setattr(devices, "is_host", lambda device: is_host)
    wide = th.arange(100).to(getattr(th, dtype))
    store = create_observation_store(name, 2, 1, 50, wide.dtype, "cpu")
    store.write(0, 0, wide[::2])
    assert th.equal(store.read(0, 0), wide[::2].clone())


@pytest.mark.parametrize("name", ["none", "rle"])
@pytest.mark.parametrize(("steps", "envs"), [(4, 1), (1, 3), (4, 3)])
def test_what_is_done_to_all_observations_stays_outside(name, steps, envs):
    store = create_observation_store(name, steps, envs, 50, th.uint8, "cpu")
    shown = observations(steps * envs, "uint8")
    for number, value in enumerate(shown):
        store.write(number // envs, number % envs, value)
    if name == "none":
        store.flatten().zero_()
    else:
        store.flatten().clear()
    assert all(th.equal(store.read(number // envs, number % envs), value) for number, value in enumerate(shown))
    assert th.equal(flattened(store, store.flatten()[-1]), shown[-1])


def test_flattening_a_compressed_store_orders_metadata_and_decodes_nothing():
    def decompress(*_):
        raise AssertionError("nothing has to be decoded")

    heap = SharedRawHeap(2 * 12, 1 << 12, "cpu")
    store = create_observation_store(
        "rle", 4, 3, 50, th.uint8, "cpu", 1, decompress=decompress, shared_heap=heap, n_fields=2
    )
    runs = {(pos, env): 1 + pos * 3 + env for pos in range(4) for env in range(3) if (pos, env) != (2, 1)}
    for (pos, env), count in runs.items():
        store.write(pos, env, th.clamp(th.arange(50), max=count - 1).to(th.uint8))
    found = store.flatten()
    # All steps of the first environment, then those of the second: the order of swap_and_flatten.
    expected = [runs.get((number % 4, number // 4)) for number in range(12)]
    assert [entry and entry.run_length for entry in found] == expected
    for number, entry in enumerate(found):
        if entry is not None:
            cell = store.cell_id(number % 4, number // 4)
            assert (entry.byte_start, entry.payload_bytes) == (heap.start_idx[cell], heap.lengths[cell])
            assert (entry.pos_runs, entry.pos_elem) == (0, entry.run_length)


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
    heap = SharedRawHeap(12, 160, "cpu", on_full="evict")
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

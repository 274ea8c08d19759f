"""Codecs on a device read what those on the host wrote, and write what those read."""

import logging
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch as th
from torch.utils._python_dispatch import TorchDispatchMode

from sb3_extra_buffers import heaps
from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind
from sb3_extra_buffers.codecs import names as host_names
from sb3_extra_buffers.errors import DeviceError, ParameterError, PayloadError
from sb3_extra_buffers.gpu_buffers import codecs
from sb3_extra_buffers.gpu_buffers.codecs import rle as rle_codec
from sb3_extra_buffers.gpu_buffers.kernels.launch import Status

CPU = th.device("cpu")
DTYPES = ["u1", "i1", "?", "<u2", "<f2", "<i4", "<f4", "<f8", "<i8", "g"]


def content(dtype, count, seed=0):
    """Cells of every kind: runs, noise, one value."""
    random = np.random.default_rng(seed)
    bytes_ = np.dtype(dtype).itemsize
    noise = random.integers(2 if dtype == "?" else 256, size=(1, count * bytes_), dtype=np.uint8)
    runs = np.repeat(random.integers(2, size=(2, count), dtype=np.uint8), bytes_, axis=1)
    runs[1] = np.sort(runs[1])
    return np.concatenate([noise, runs, np.zeros((1, count * bytes_), np.uint8)])


def stored(name, cell, rows):
    codec, heap = bind(name, cell), heaps.create("device", len(rows), device="cpu")
    for number, row in enumerate(rows):
        payload = np.frombuffer(codec.encode(row.view(cell.dtype)), np.uint8)
        heap.reserve(np.array([number]), len(payload))[:] = payload
        heap.commit(np.array([len(payload)]))
    return codec, heap


@pytest.mark.parametrize("name", ["none", "rle", "rle-jit"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 2, 63, 65, 255, 256, 1000, 65535, 65536])
def test_what_the_host_wrote_is_read_on_the_device(name, dtype, count):
    if name not in host_names():
        pytest.skip(f"{name} is not installed on the host")
    cell = CellSpec(np.dtype(dtype), count)
    rows = content(dtype, count)
    codec, heap = stored(name, cell, rows)
    decoder = codecs.decoder_for(codec, CPU, "device")
    order = np.array([2, 0, 3, 1, 0])
    out = th.full((5, cell.nbytes), 77, dtype=th.uint8)
    decoder.decode(heap, *heap.locate(order), out)
    assert out.numpy().tobytes() == rows[order].tobytes()


@pytest.mark.parametrize("name", ["none", "rle"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 64, 300, 70000])
def test_what_the_device_wrote_is_that_of_the_host(name, dtype, count):
    cell = CellSpec(np.dtype(dtype), count)
    rows = content(dtype, count)
    codec = bind(name, cell)
    payloads, lengths = codecs.decoder_for(codec, CPU, "device").encode(th.from_numpy(rows))
    assert len(payloads) % 16 == 0
    begin = 0
    for row, length in zip(rows, lengths):
        assert payloads[begin : begin + length].numpy().tobytes() == bytes(codec.encode(row.view(cell.dtype)))
        begin += -(-length // 16) * 16


@pytest.mark.parametrize("name", ["none", "rle"])
def test_bytes_as_floats(name):
    rows = content("u1", 500)
    codec, heap = stored(name, CellSpec(np.uint8, 500), rows)
    out = th.empty((4, 500))
    codecs.decoder_for(codec, CPU, "device").decode(heap, *heap.locate(np.arange(4)), out)
    assert out.numpy().tobytes() == rows.astype(np.float32).tobytes()


def test_who_decodes():
    codec, other = bind("rle", CellSpec(np.uint8, 9)), bind("gzip", CellSpec(np.uint8, 9))
    assert codecs.decoder_for(codec, CPU) is None  # compiled codecs are faster there
    assert codecs.decoder_for(codec, CPU, "host") is None
    assert codecs.decoder_for(codec, CPU, "device") is not None
    assert codecs.decoder_for(other, th.device("meta"), "auto") is None
    assert codecs.names() == ("lz4-block", "none", "rle", "rle-jit", "zstd")
    with pytest.raises(DeviceError, match="'gzip' has no path on a device"):
        codecs.decoder_for(other, CPU, "device")
    with pytest.raises(ParameterError, match="decode_on='gpu'"):
        codecs.decoder_for(codec, CPU, "gpu")


class Odd:
    """A codec for elements that no kernel knows: long doubles of twelve bytes, as 32-bit systems have them."""

    spec = CodecSpec("rle")
    cell = SimpleNamespace(count=9, dtype=SimpleNamespace(itemsize=12))


def test_elements_that_no_kernel_knows(caplog):
    with pytest.raises(DeviceError, match="not of 12"):
        codecs.decoder_for(Odd(), CPU, "device")
    with caplog.at_level(logging.INFO):
        assert codecs.decoder_for(Odd(), th.device("meta"), "auto") is None
    assert "decoded on the host" in caplog.text


def damaged(name, change):
    codec, heap = stored(name, CellSpec(np.uint8, 300), content("u1", 300)[1:])
    starts, lengths = heap.locate(np.arange(3))
    change(heap.slices(starts, lengths)[1])
    out = th.empty((3, 300), dtype=th.uint8)
    codecs.decoder_for(codec, CPU, "device").decode(heap, starts, lengths, out)


@pytest.mark.parametrize(
    "change",
    [
        lambda payload: payload.fill_(0),
        lambda payload: payload.fill_(255),
        lambda payload: payload[: len(payload) // 3 * 2].copy_(payload[: len(payload) // 3 * 2].flip(0)),
    ],
    ids=["zero", "beyond", "falling"],
)
def test_damaged_runs_are_an_error_that_names_them(change):
    with pytest.raises(PayloadError, match="rle") as caught:
        damaged("rle", change)
    assert caught.value.index == 1
    assert pickle.loads(pickle.dumps(caught.value)).index == 1


@pytest.mark.parametrize("name", ["none", "rle"])
def test_a_payload_that_was_cut_is_an_error(name):
    codec, heap = stored(name, CellSpec(np.uint8, 300), content("u1", 300))
    starts, lengths = heap.locate(np.arange(4))
    lengths[2] -= 1
    with pytest.raises(PayloadError, match=name):
        codecs.decoder_for(codec, CPU, "device").decode(heap, starts, lengths, th.empty((4, 300), dtype=th.uint8))


class Waits(TorchDispatchMode):
    """Notes operations for which the host has to wait for a device."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(word in str(func) for word in ("_local_scalar_dense", "nonzero", "is_nonzero", "aten.equal", "masked")):
            self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.fixture
def elsewhere(monkeypatch):
    """The CPU is not the host for device codecs: so they work on a device without kernels, such as MPS."""
    monkeypatch.setattr(rle_codec, "CPU", None)
    made = Status.__init__

    def collected(self, codec, device):
        made(self, codec, device)
        self._is_awaited, self._is_collected = False, True

    monkeypatch.setattr(Status, "__init__", collected)


@pytest.mark.parametrize("dtype", ["u1", "<f4"])
@pytest.mark.parametrize("count", [1, 300, 7056, 70000])
def test_without_kernels_runs_are_decoded_without_waiting_for_the_device(elsewhere, dtype, count):
    cell, rows = CellSpec(np.dtype(dtype), count), content(dtype, count)
    codec, heap = stored("rle", cell, rows)
    decoder = codecs.decoder_for(codec, CPU, "device")
    order = np.array([2, 0, 3, 1, 0])
    out = th.full((5, cell.nbytes), 77, dtype=th.uint8)
    with Waits() as waits:
        decoder.decode(heap, *heap.locate(order), out)
    assert waits.seen == []
    assert out.numpy().tobytes() == rows[order].tobytes()


def test_without_kernels_damage_stays_in_its_row_and_is_reported_a_few_batches_later(elsewhere):
    cell = CellSpec(np.dtype("u1"), 1000)
    rows = np.sort(np.random.default_rng(0).integers(0, 50, (4, 1000), dtype=np.uint8))
    codec, heap = stored("rle", cell, rows)
    decoder = codecs.decoder_for(codec, CPU, "device")
    starts, lengths = heap.locate(np.arange(4))
    for content_of_damage in (0, 255):
        out = th.zeros((4, 1000), dtype=th.uint8)
        payload = heap.slices(starts[1:2], lengths[1:2])[0]
        sound = payload.clone()
        payload[: len(payload) // 2] = content_of_damage
        decoder.decode(heap, starts, lengths, out)
        for row in (0, 2, 3):
            assert out[row].numpy().tobytes() == rows[row].tobytes()
        payload.copy_(sound)
        for _ in range(7):
            decoder.decode(heap, starts[:1], lengths[:1], out[:1])
        with pytest.raises(PayloadError) as caught:
            decoder.decode(heap, starts[:1], lengths[:1], out[:1])
        assert (caught.value.index, caught.value.payload_nbytes) == (1, lengths[1])
        decoder._status.check()  # the others found nothing


def test_detection_of_waits_can_fail():
    with Waits() as waits:
        assert bool(th.ones(3).any())
    assert waits.seen

"""Codecs on a device read what those on the host wrote, and write what those read."""

import logging
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch as th

from sb3_extra_buffers import heaps
from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind
from sb3_extra_buffers.codecs import names as host_names
from sb3_extra_buffers.errors import DeviceError, ParameterError, PayloadError
from sb3_extra_buffers.gpu_buffers import codecs

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

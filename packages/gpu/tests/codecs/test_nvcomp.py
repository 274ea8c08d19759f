"""The adapter for nvCOMP, with a stand-in that has its calls and decodes on the CPU. The real one needs a device."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch as th

from sb3_extra_buffers import heaps
from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind, names
from sb3_extra_buffers.errors import DeviceError, MissingExtraError, PayloadError
from sb3_extra_buffers.gpu_buffers import codecs
from sb3_extra_buffers.gpu_buffers.codecs import DeviceCodecPlugin, nvcomp
from sb3_extra_buffers.gpu_buffers.testing import DEVICE_CODEC_RULES, DeviceCodecSubject

CELL = CellSpec(np.uint8, 1200)
CPU = th.device("cpu")
ALGORITHMS = [("zstd", "Zstd"), ("lz4-block", "LZ4")]


class StandIn:
    """What the adapter calls of nvCOMP 6, with the same signatures."""

    __version__ = "6.0.0"
    BitstreamKind = SimpleNamespace(RAW="raw")

    def __init__(self, codec):
        self.host, self.calls = codec, []

    def as_arrays(self, sources, cuda_stream=0):
        assert all(isinstance(source, th.Tensor) and source.dtype == th.uint8 for source in sources)
        assert all(source.is_contiguous() for source in sources)
        return list(sources)

    def Codec(self, **options):  # noqa: N802  as it is called there
        self.options = options
        return SimpleNamespace(decode=self.decode)

    def decode(self, srcs, data_type="", out=None, decompression_config=None):
        self.calls.append(len(srcs))
        for source, target in zip(srcs, out):
            assert source.data_ptr() % 16 == 0
            self.host.decode_into(source.numpy(), target.numpy())
        return out


def rows():
    random = np.random.default_rng(0)
    return np.stack([random.integers(high, size=1200).astype(np.uint8) for high in (2, 256, 1, 256, 3)])


def stored(codec):
    heap = heaps.create("device", 5, device="cpu")
    for number, row in enumerate(rows()):
        payload = np.frombuffer(codec.encode(row), np.uint8)
        heap.reserve(np.array([number]), len(payload))[:] = payload
        heap.commit(np.array([len(payload)]))
    return heap


@pytest.mark.parametrize(("name", "algorithm"), ALGORITHMS)
@pytest.mark.parametrize("dtype", [th.uint8, th.float32])
def test_frames_are_decoded_in_one_call_and_raw_cells_are_copied(name, algorithm, dtype):
    if name not in names():
        pytest.skip(f"{name} is not installed")
    codec = bind(name, CELL)
    library, heap = StandIn(codec), stored(codec)
    decoder = nvcomp.NvcompCodec(codec, CPU, algorithm, library)
    order = np.array([4, 1, 0, 2, 3, 0])
    out = th.empty((6, 1200), dtype=dtype)
    decoder.decode(heap, *heap.locate(order), out)
    assert out.numpy().astype(np.uint8).tobytes() == rows()[order].tobytes()
    assert library.calls == [4]  # noise is stored as it is
    assert (library.options["algorithm"], library.options["bitstream_kind"]) == (algorithm, "raw")
    payloads, lengths = decoder.encode(th.from_numpy(rows()))
    begin = 0
    for row, length in zip(rows(), lengths):
        assert payloads[begin : begin + length].numpy().tobytes() == bytes(codec.encode(row))
        begin += -(-length // 16) * 16


@pytest.mark.parametrize("rule", DEVICE_CODEC_RULES, ids=lambda rule: rule.id)
@pytest.mark.parametrize(("name", "algorithm"), ALGORITHMS)
def test_the_adapter_follows_the_contract(name, algorithm, rule):
    if name not in names():
        pytest.skip(f"{name} is not installed")

    def create(codec, device):
        return nvcomp.NvcompCodec(codec, device, algorithm, StandIn(codec))

    rule.verify(DeviceCodecSubject(name, DeviceCodecPlugin(1, create, "Through a stand-in")))


@pytest.mark.parametrize(("name", "algorithm"), ALGORITHMS)
def test_what_is_refused(name, algorithm):
    if name not in names():
        pytest.skip(f"{name} is not installed")
    codec = bind(name, CELL)
    heap = stored(codec)
    starts, lengths = heap.locate(np.arange(5))
    decoder = nvcomp.NvcompCodec(codec, CPU, algorithm, StandIn(codec))
    with pytest.raises(PayloadError, match="a cell has 1200 bytes"):
        decoder.decode(heap, starts, lengths + 1, th.empty((5, 1200), dtype=th.uint8))
    with pytest.raises(DeviceError, match="NVIDIA devices only"):
        codecs.decoder_for(codec, CPU, "device")
    assert codecs.decoder_for(codec, th.device("meta"), "auto") is None


def test_checksums_are_not_read():
    if "zstd" not in names():
        pytest.skip("zstd is not installed")
    with pytest.raises(DeviceError, match="with a checksum"):
        nvcomp.NvcompCodec(bind(CodecSpec("zstd", {"checksum": True}), CELL), CPU, "Zstd", StandIn(None))


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(nvcomp, "find_spec", lambda name: None)
    codec = bind("gzip", CELL)
    with pytest.raises(MissingExtraError, match=r"buffers\[nvcomp\]"):
        nvcomp.nvcomp_codec(codec, th.device("cuda", 0), "Zstd")

"""``zstd`` and ``lz4-block`` on NVIDIA devices: nvCOMP decodes payloads directly from the heap."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch as th

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.errors import DeviceError, MissingExtraError, PayloadError
from sb3_extra_buffers.gpu_buffers.codecs.protocol import DeviceCodecPlugin, PluginHook
from sb3_extra_buffers.gpu_buffers.devices import aligned
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.memory import Indices

_MODULE = "nvidia.nvcomp"


def nvcomp_codec(codec: Codec, device: th.device, algorithm: str) -> NvcompCodec:
    """A codec that decodes with nvCOMP, or an error if the device or the library is missing.

    :param codec: the host codec of the payloads
    :param device: the device of the payloads
    :param algorithm: nvCOMP's name of the codec
    """
    name = codec.spec.name
    if device.type != "cuda" or th.version.hip is not None:
        raise DeviceError(str(device), f"nvCOMP decodes {name} on NVIDIA devices only", "Use decode_on='auto'.")
    if not _is_installed():
        raise MissingExtraError(f"{name} on a device", "nvidia-nvcomp-cu13", "nvcomp")
    library = import_module(_MODULE)
    if int(str(library.__version__).partition(".")[0]) < 6:
        raise DeviceError(str(device), f"nvCOMP {library.__version__} is too old, 6 is needed", "Upgrade it.")
    return NvcompCodec(codec, device, algorithm, library)


def _is_installed() -> bool:
    try:
        return find_spec(_MODULE) is not None
    except ModuleNotFoundError:  # the parent package is missing, too
        return False


class NvcompCodec:
    """Decodes payloads with nvCOMP. nvCOMP waits for the device once per batch, to read the headers of the payloads.

    :param codec: the host codec of the payloads
    :param device: the device of the payloads
    :param algorithm: nvCOMP's name of the codec
    :param library: the module of nvCOMP
    """

    def __init__(self, codec: Codec, device: th.device, algorithm: str, library: Any) -> None:
        if codec.detects_corruption:
            problem = f"nvCOMP does not read {codec.spec.name} with a checksum"
            raise DeviceError(str(device), problem, "Leave checksum out, or use decode_on='host'.")
        self._codec, self._device = codec, device
        self._algorithm, self._library = algorithm, library
        #: One decoder per stream: decoding must follow the writes of the same stream.
        self._decoders: dict[int, Any] = {}

    def decode(self, heap: DevicePayloads, starts: Indices, lengths: Indices, out: th.Tensor, /) -> None:
        nbytes = self._codec.cell.nbytes
        if len(lengths) and int(lengths.max()) > nbytes:
            index = int(lengths.argmax())
            raise PayloadError(self._codec.spec.name, int(lengths[index]), f"a cell has {nbytes} bytes", index)
        rows = out if out.dtype == th.uint8 else th.empty(out.shape, dtype=th.uint8, device=out.device)
        slices = heap.slices(starts, lengths)
        is_raw = lengths == nbytes  # incompressible cells are stored raw
        for index in np.flatnonzero(is_raw).tolist():
            rows[index].copy_(slices[index])
        framed = np.flatnonzero(~is_raw).tolist()
        if framed:
            stream = th.cuda.current_stream(self._device).cuda_stream if self._device.type == "cuda" else 0
            sources = self._library.as_arrays([slices[index] for index in framed], cuda_stream=stream)
            targets = self._library.as_arrays([rows[index] for index in framed], cuda_stream=stream)
            self._decoder(stream).decode(sources, out=targets)
        if rows is not out:
            out.copy_(rows)

    def _decoder(self, stream: int) -> Any:
        if stream not in self._decoders:
            self._decoders[stream] = self._library.Codec(
                algorithm=self._algorithm,
                bitstream_kind=self._library.BitstreamKind.RAW,
                device_id=self._device.index or 0,
                cuda_stream=stream,
            )
        return self._decoders[stream]

    def encode(self, rows: th.Tensor, /) -> tuple[th.Tensor, list[int]]:
        # On the host: its libraries compress better, and observations are added there anyway.
        payloads = [bytes(self._codec.encode(row.view(self._codec.cell.dtype))) for row in rows.cpu().numpy()]
        padded = [payload.ljust(aligned(len(payload)), b"\0") for payload in payloads]
        joined = th.frombuffer(bytearray(b"".join(padded)), dtype=th.uint8)
        return joined.to(rows.device), [len(payload) for payload in payloads]


def _create_lz4_block(codec: Codec, device: th.device) -> NvcompCodec:
    return nvcomp_codec(codec, device, "LZ4")


def _create_zstd(codec: Codec, device: th.device) -> NvcompCodec:
    return nvcomp_codec(codec, device, "Zstd")


lz4_block = PluginHook(DeviceCodecPlugin(protocol=1, factory=_create_lz4_block, summary="LZ4 through nvCOMP"))
zstd = PluginHook(DeviceCodecPlugin(protocol=1, factory=_create_zstd, summary="Zstandard through nvCOMP"))

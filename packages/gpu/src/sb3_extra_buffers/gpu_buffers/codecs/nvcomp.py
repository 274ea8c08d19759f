"""Payloads of libraries that nvCOMP knows, decoded on NVIDIA devices straight from the heap."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch as th

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.errors import DeviceError, MissingExtraError, PayloadError
from sb3_extra_buffers.gpu_buffers.devices import ALIGNMENT
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.memory import Indices

_MODULE = "nvidia.nvcomp"


def nvcomp_codec(codec: Codec, device: th.device, algorithm: str) -> NvcompCodec:
    """A codec that decodes with nvCOMP, if there is such a device and such a library.

    :param codec: what payloads are made with on the host
    :param device: where they are
    :param algorithm: what nvCOMP calls it
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
    except ModuleNotFoundError:  # not even the folder that it shares with others
        return False


class NvcompCodec:
    """Frames as libraries on the host make them. nvCOMP waits for the device once per batch, to look at their headers.

    :param codec: what payloads are made with on the host
    :param device: where they are
    :param algorithm: what nvCOMP calls it
    :param library: nvCOMP
    """

    def __init__(self, codec: Codec, device: th.device, algorithm: str, library: Any) -> None:
        if codec.detects_corruption:
            problem = f"nvCOMP does not read {codec.spec.name} with a checksum"
            raise DeviceError(str(device), problem, "Leave checksum out, or use decode_on='host'.")
        self._codec, self._device = codec, device
        self._algorithm, self._library = algorithm, library
        #: One for each stream: what is decoded must come after what the same stream has written.
        self._decoders: dict[int, Any] = {}

    def decode(self, heap: DevicePayloads, starts: Indices, lengths: Indices, out: th.Tensor, /) -> None:
        nbytes = self._codec.cell.nbytes
        if len(lengths) and int(lengths.max()) > nbytes:
            index = int(lengths.argmax())
            raise PayloadError(self._codec.spec.name, int(lengths[index]), f"a cell has {nbytes} bytes", index)
        rows = out if out.dtype == th.uint8 else th.empty(out.shape, dtype=th.uint8, device=out.device)
        slices = heap.slices(starts, lengths)
        is_raw = lengths == nbytes  # what does not compress is stored as it is
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
        # On the host: its libraries compress better, and what is added is there anyway.
        payloads = [bytes(self._codec.encode(row.view(self._codec.cell.dtype))) for row in rows.cpu().numpy()]
        padded = [payload + bytes(-len(payload) % ALIGNMENT) for payload in payloads]
        joined = th.frombuffer(bytearray(b"".join(padded)), dtype=th.uint8)
        return joined.to(rows.device), [len(payload) for payload in payloads]

"""One observation at a time, into a :class:`RawBuffer` and out of it: how the published package saw a codec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch as th

from sb3_extra_buffers.codecs import CellSpec, Codec, CodecSpec, bind
from sb3_extra_buffers.codecs.rle import end_dtype
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.gpu_buffers.codecs import decoder_for
from sb3_extra_buffers.gpu_buffers.metadata import SlotMetadata, arr_config_length
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer, read_at, write_at
from sb3_extra_buffers.gpu_buffers.utils import torch_dtype_to_numpy
from sb3_extra_buffers.stores import parse_request

Compress = Callable[..., SlotMetadata]
Decompress = Callable[..., th.Tensor]


class GpuCompressionMethod(NamedTuple):
    """A codec as two callables.

    :param compress: ``compress(tensor, buffer, byte_start)`` writes a payload and says where
    :param decompress: ``decompress(buffer, metadata, elem_type, runs_type, arr_configs)`` returns a flat tensor
    """

    compress: Compress
    decompress: Decompress


GpuCompressionMethods = GpuCompressionMethod


def compressor(method: str, kwargs: Mapping[str, Any] | None = None) -> Compress:
    """A callable that compresses one observation. It pickles.

    :param method: a codec
    :param kwargs: its parameters
    """
    return _Compressor(_spec(method, kwargs))


def decompressor(
    method: str, kwargs: Mapping[str, Any] | None = None, decompression_kwargs: Mapping[str, Any] | None = None
) -> Decompress:
    """A callable that takes out what :func:`compressor` put in.

    :param method: a codec
    :param kwargs: its parameters
    :param decompression_kwargs: accepted for old scripts, without effect
    """
    return _Decompressor(_spec(method, kwargs, decompression_kwargs))


def _spec(method: str, kwargs: Mapping[str, Any] | None, ignored: Mapping[str, Any] | None = None) -> CodecSpec:
    spec = parse_request(method, kwargs, ignored)
    if spec is None:
        raise ParameterError("codec", "compression_method", method, "one observation at a time, a codec must be named")
    return spec


@dataclass(frozen=True)
class _Compressor:
    spec: CodecSpec

    def __call__(self, arr: th.Tensor, buffer: RawBuffer, byte_start: int = 0, **_: Any) -> SlotMetadata:
        # A flat view may still have a stride, and kernels take addresses: they would read what lies between.
        values = arr.detach().reshape(-1).contiguous()
        codec = _bound(self.spec, values.dtype, values.numel())
        on_device = decoder_for(codec, values.device)
        if on_device is None:
            payload = th.from_numpy(np.frombuffer(codec.encode(values.cpu().numpy()), np.uint8).copy())
        else:
            payloads, (length,) = on_device.encode(values.view(th.uint8)[None])
            payload = payloads[:length]
        write_at(buffer, byte_start, 0, payload)
        return _metadata(codec, byte_start, len(payload))


@dataclass(frozen=True)
class _Decompressor:
    spec: CodecSpec

    def __call__(
        self,
        buffer: RawBuffer,
        metadata: SlotMetadata,
        elem_type: th.dtype,
        runs_type: th.dtype | None = None,  # noqa: ARG002  the published package passes it; the payload says it too
        arr_configs: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> th.Tensor:
        count = arr_config_length(dict(arr_configs or {}))
        payload = read_at(buffer, metadata.byte_start, 0, metadata.payload_bytes, th.uint8).cpu().numpy()
        values = np.empty(count, torch_dtype_to_numpy(elem_type))
        _bound(self.spec, elem_type, count).decode_into(payload, values)
        return th.from_numpy(values).to(buffer.device)


def _bound(spec: CodecSpec, dtype: th.dtype, count: int) -> Codec:
    return bind(spec, CellSpec(torch_dtype_to_numpy(dtype), count))


def _metadata(codec: Codec, byte_start: int, nbytes: int) -> SlotMetadata:
    """Where the parts of a payload are; only runs have parts."""
    if not codec.spec.name.startswith("rle") or nbytes == codec.cell.nbytes:
        return SlotMetadata(byte_start, 0, 0, 0, nbytes)
    width = end_dtype(codec.cell.count).itemsize
    runs = nbytes // (width + codec.cell.dtype.itemsize)
    return SlotMetadata(byte_start, 0, runs * width, runs, nbytes)

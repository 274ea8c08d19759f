"""Codecs for one observation in a :class:`RawBuffer`: the interface of the published package."""

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
from sb3_extra_buffers.gpu_buffers.compression_methods.compression_methods import rle_compress, rle_decompress
from sb3_extra_buffers.gpu_buffers.metadata import SlotMetadata, arr_config_length
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer, read_at, write_at
from sb3_extra_buffers.gpu_buffers.utils import has_zstd, torch_dtype_to_numpy
from sb3_extra_buffers.stores import parse_request

__all__ = [
    "GpuCompressionMethod",
    "GpuCompressionMethods",
    "compressor",
    "decompressor",
    "default_level",
    "has_zstd",
    "rle_compress",
    "rle_decompress",
]

#: Levels of codecs that are named without one, as in the published GPU buffers. The codecs have other defaults.
_DEFAULT_LEVELS = {"zstd": -3}

Compress = Callable[..., SlotMetadata]
Decompress = Callable[..., th.Tensor]


class GpuCompressionMethod(NamedTuple):
    """A codec as two callables.

    :param compress: ``compress(tensor, buffer, byte_start)`` writes a payload and returns its position
    :param decompress: ``decompress(buffer, metadata, elem_type, runs_type, arr_configs)`` returns a flat tensor
    """

    compress: Compress
    decompress: Decompress


GpuCompressionMethods = GpuCompressionMethod


def default_level(method: Any, kwargs: Mapping[str, Any] | None = None) -> Any:
    """A ``compression_method`` with the level that buffers on a device use for a codec named without one.

    :param method: a codec, or codecs by key
    :param kwargs: its parameters, which may have the level
    """
    if isinstance(method, Mapping):
        return {key: default_level(part) for key, part in method.items()}
    is_spec = isinstance(method, CodecSpec)
    level = _DEFAULT_LEVELS.get(method.name if is_spec else method)
    params = {**(method.params if is_spec else {}), **(kwargs or {})}
    if level is None or not {"level", "compresslevel"}.isdisjoint(params):
        return method
    return CodecSpec(method.name, {**method.params, "level": level}) if is_spec else f"{method}{level}"


def compressor(method: str, kwargs: Mapping[str, Any] | None = None) -> Compress:
    """A callable that compresses one observation. It can be pickled.

    :param method: a codec
    :param kwargs: its parameters
    """
    return _Compressor(_spec(method, kwargs))


def decompressor(
    method: str, kwargs: Mapping[str, Any] | None = None, decompression_kwargs: Mapping[str, Any] | None = None
) -> Decompress:
    """A callable that decompresses what :func:`compressor` wrote. It can be pickled.

    :param method: a codec
    :param kwargs: its parameters
    :param decompression_kwargs: accepted for old scripts, without effect
    """
    return _Decompressor(_spec(method, kwargs, decompression_kwargs))


def _spec(method: str, kwargs: Mapping[str, Any] | None, ignored: Mapping[str, Any] | None = None) -> CodecSpec:
    spec = parse_request(default_level(method, kwargs), kwargs, ignored)
    if spec is None:
        raise ParameterError("codec", "compression_method", method, "one observation at a time, a codec must be named")
    return spec


@dataclass(frozen=True)
class _Compressor:
    spec: CodecSpec

    def __call__(self, arr: th.Tensor, buffer: RawBuffer, byte_start: int = 0, **_: Any) -> SlotMetadata:
        # Contiguous: kernels take addresses and ignore strides.
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
        runs_type: th.dtype | None = None,  # noqa: ARG002  passed by old scripts; the payload determines it
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
    """Position of a payload and its parts; only run-length payloads have parts."""
    if not codec.spec.name.startswith("rle") or nbytes == codec.cell.nbytes:
        return SlotMetadata(byte_start, 0, 0, 0, nbytes)
    width = end_dtype(codec.cell.count).itemsize
    runs = nbytes // (width + codec.cell.dtype.itemsize)
    return SlotMetadata(byte_start, 0, runs * width, runs, nbytes)

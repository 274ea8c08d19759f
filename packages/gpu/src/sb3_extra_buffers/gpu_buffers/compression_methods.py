"""Codecs for one observation in a :class:`RawBuffer`: the interface of the published package."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch as th

from sb3_extra_buffers.codecs import CellSpec, Codec, CodecSpec, bind
from sb3_extra_buffers.codecs.rle import end_dtype
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.gpu_buffers.codecs import decoder_for
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer, read_at, write_at
from sb3_extra_buffers.gpu_buffers.utils import torch_dtype_to_numpy
from sb3_extra_buffers.stores import parse_request

_OWNER = "arr_config_length"


@dataclass(frozen=True)
class SlotMetadata:
    """Position and parts of one payload. Offsets of the parts are relative to its first byte.

    :param byte_start: position of the payload in its buffer, in bytes
    :param pos_runs: offset of the run lengths, in bytes
    :param pos_elem: offset of the elements, in bytes
    :param run_length: number of runs
    :param payload_bytes: size of the payload, in bytes
    """

    byte_start: int
    pos_runs: int
    pos_elem: int
    run_length: int
    payload_bytes: int


def arr_config_length(arr_configs: Mapping[str, Any]) -> int:
    """Number of elements of a flattened observation.

    :param arr_configs: has ``"size"``, or else ``"shape"`` (an integer counts as a shape of one axis)
    """
    for key in ("size", "shape"):
        if arr_configs.get(key) is not None:
            return _count(key, arr_configs[key])
    allowed = "it must say how long the observation is, under the key 'size' or 'shape'"
    raise ParameterError(_OWNER, "arr_configs", dict(arr_configs), allowed, 'For example: {"size": 28224}.')


def _count(key: str, value: object) -> int:
    # Text is a sequence, too, but not a shape.
    if key == "shape" and isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        axes = list(value)
    else:
        axes = [value]
    if not all(isinstance(axis, (int, np.integer)) and not isinstance(axis, bool) and axis >= 0 for axis in axes):
        what = "a number of elements" if key == "size" else "a number of elements or a sequence of axes"
        raise ParameterError(_OWNER, f"arr_configs[{key!r}]", value, f"it must be {what}, none of them negative")
    return math.prod(int(axis) for axis in axes)


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
    spec = parse_request(method, kwargs, ignored)
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

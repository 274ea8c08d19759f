"""``rle`` and ``rle-jit`` on a device: Triton on CUDA and ROCm, plain torch elsewhere. Both have the same payloads.

The host encodes ``rle`` with the compiled ``rle-jit`` if that is installed: see :func:`bind_compiled`.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch as th

from sb3_extra_buffers.codecs import BatchCodec, CellSpec, Codec, CodecLike, CodecSpec, bind, registry
from sb3_extra_buffers.errors import DeviceError, PluginError
from sb3_extra_buffers.gpu_buffers.codecs.protocol import DeviceCodecPlugin, PluginHook
from sb3_extra_buffers.gpu_buffers.devices import CPU, aligned, has_kernels
from sb3_extra_buffers.gpu_buffers.kernels import rle_reference
from sb3_extra_buffers.gpu_buffers.kernels.launch import Status
from sb3_extra_buffers.gpu_buffers.kernels.rle_reference import ITEM_SIZES
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.memory import Buffer, Bytes, ByteSource, Indices

_PLAIN, _COMPILED = "rle", "rle-jit"


class RleOnDevice:
    """Decodes and encodes run-length payloads on a device.

    :param codec: the host codec of the payloads
    :param device: the device of the payloads
    """

    def __init__(self, codec: Codec, device: th.device) -> None:
        name, self._count, self._item = codec.spec.name, codec.cell.count, codec.cell.dtype.itemsize
        if self._item not in ITEM_SIZES:
            problem = f"{name} decodes elements of {', '.join(map(str, ITEM_SIZES))} bytes there, not of {self._item}"
            raise DeviceError(str(device), problem, "Use decode_on='host'.")
        self._has_kernels = has_kernels(device)
        # Damage is reported later wherever the host would have to wait for it.
        self._status = Status(name, device) if self._has_kernels or device != CPU else None

    def decode(self, heap: DevicePayloads, starts: Indices, lengths: Indices, out: th.Tensor, /) -> None:
        scale = 1.0 if out.dtype == th.float32 else None
        cell: dict[str, Any] = {"count": self._count, "item": self._item, "scale": scale}
        if self._status is None:
            rle_reference.decode(heap.slices(starts, lengths), out, **cell)
            return
        if not self._has_kernels:
            slices = heap.slices(starts, lengths)
            with self._status.watching(lengths) as status:
                rle_reference.decode(slices, out, **cell, status=status, upload=heap.uploaded)
            return
        from sb3_extra_buffers.gpu_buffers.kernels import rle_decode

        addresses = heap.device_addresses(starts, lengths)
        places = heap.uploaded(np.stack([addresses.view(np.int64), lengths]))
        with self._status.watching(lengths) as status:
            rle_decode.decode(places[0], places[1], out, status, **cell)

    def encode(self, rows: th.Tensor, /) -> tuple[th.Tensor, list[int]]:
        encoding: Any = rle_reference
        if self._has_kernels:
            from sb3_extra_buffers.gpu_buffers.kernels import rle_encode as encoding
        measured = encoding.measure(rows, item=self._item)
        lengths: list[int] = measured.lengths.tolist()  # waits for the device: the host allocates
        sizes = np.array([aligned(length) for length in lengths])
        out = th.zeros(int(sizes.sum()), dtype=th.uint8, device=rows.device)
        offsets = th.from_numpy(np.cumsum(sizes) - sizes).to(rows.device)
        encoding.write(rows, measured, offsets, out, item=self._item)
        return out, lengths


class CompiledRle:
    """The host codec ``rle``, executed by ``rle-jit``: same payloads, same name, compiled.

    It is saved and pickled as ``rle``, and bound again when it is loaded, where numba may be missing.

    :param spec: the codec that was requested
    :param compiled: the codec that does the work
    """

    def __init__(self, spec: CodecSpec, compiled: BatchCodec) -> None:
        self.spec = spec
        self.cell = compiled.cell
        self.max_encoded_nbytes = compiled.max_encoded_nbytes
        self.detects_corruption = compiled.detects_corruption
        self.min_nbytes_per_thread = getattr(compiled, "min_nbytes_per_thread", None)
        self._compiled = compiled

    def encode(self, cell: Buffer, /) -> Buffer:
        return self._compiled.encode(cell)

    def decode_into(self, payload: Buffer, out: Buffer, /) -> None:
        self._compiled.decode_into(payload, out)

    def encode_batch(self, rows: Bytes, out: Bytes, /) -> Indices:
        return self._compiled.encode_batch(rows, out)

    def decode_batch(self, source: ByteSource, starts: Indices, lengths: Indices, out: Bytes, /) -> None:
        self._compiled.decode_batch(source, starts, lengths, out)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.spec} for {self.cell}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return bind_compiled, (self.spec, self.cell)


def bind_compiled(codec: CodecLike, cell: CellSpec) -> Codec:
    """Bind a host codec like :func:`~sb3_extra_buffers.codecs.bind`, and ``rle`` as :class:`CompiledRle` if possible.

    :param codec: the codec
    :param cell: the cells to encode
    """
    found = bind(codec, cell)
    if found.spec.name != _PLAIN:
        return found
    try:
        registry.load(_COMPILED)
    except PluginError:
        return found
    return CompiledRle(found.spec, cast("BatchCodec", bind(_COMPILED, cell)))


rle = PluginHook(DeviceCodecPlugin(1, RleOnDevice, "Run-length encoding in Triton or torch"))
rle_jit = PluginHook(DeviceCodecPlugin(1, RleOnDevice, "The same payloads, encoded by numba on the host"))

"""Stores for one observation at a time on a device: the interface of the published package.

The buffers do not use them: they write all environments of a step, and read a batch at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
import torch as th

from sb3_extra_buffers.errors import BufferStateError, HeapFullError, ObservationError, ParameterError
from sb3_extra_buffers.gpu_buffers.compression_methods import compressor, decompressor
from sb3_extra_buffers.gpu_buffers.devices import as_device
from sb3_extra_buffers.gpu_buffers.memory import SharedRawHeap
from sb3_extra_buffers.gpu_buffers.metadata import SlotMetadata
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer
from sb3_extra_buffers.gpu_buffers.utils import estimate_max_slot_bytes, estimate_total_heap_bytes

__all__ = ["DenseObservationStore", "RawObservationStore", "create_observation_store"]


def create_observation_store(
    compression_method: str,
    buffer_size: int,
    n_envs: int,
    flat_len: int,
    elem_type: th.dtype,
    device: str | th.device,
    field_offset: int = 0,
    compress: Callable[..., SlotMetadata] | None = None,
    decompress: Callable[..., th.Tensor] | None = None,
    runs_type: th.dtype = th.uint16,
    shared_heap: SharedRawHeap | None = None,
    n_fields: int = 1,
) -> DenseObservationStore | RawObservationStore:
    """
    Create the observation store backend for ``compression_method``.

    :param compression_method: ``"none"`` for a dense tensor, or any installed codec
    :param buffer_size: number of steps
    :param n_envs: number of environments
    :param flat_len: elements of an observation
    :param elem_type: their dtype
    :param device: device of the observations
    :param field_offset: index of the field of a step that this store holds
    :param compress: replaces the codec's own function
    :param decompress: replaces the codec's own function
    :param runs_type: passed to ``decompress``
    :param shared_heap: a heap that stores of several fields share
    :param n_fields: number of fields that share it
    """
    if compression_method == "none":
        return DenseObservationStore(buffer_size, n_envs, flat_len, elem_type, device)
    return RawObservationStore(
        buffer_size,
        n_envs,
        flat_len,
        elem_type,
        device,
        field_offset,
        compressor(compression_method) if compress is None else compress,
        decompressor(compression_method) if decompress is None else decompress,
        compression_method,
        runs_type,
        shared_heap,
        n_fields,
    )


class DenseObservationStore:
    """
    Store flattened observations in a dense Torch tensor.

    :param buffer_size: number of steps
    :param n_envs: number of environments
    :param flat_len: elements of an observation
    :param elem_type: their dtype
    :param device: device of the observations
    """

    def __init__(
        self, buffer_size: int, n_envs: int, flat_len: int, elem_type: th.dtype, device: str | th.device
    ) -> None:
        self.device = as_device(device)
        self._data = th.zeros((buffer_size, n_envs, flat_len), dtype=elem_type, device=self.device)
        self._shape = buffer_size, n_envs

    def write(self, pos: int, env_idx: int, flat_tensor: th.Tensor) -> None:
        """Write a flattened observation."""
        _check_position("DenseObservationStore", pos, env_idx, self._shape)
        data = self._data
        data[pos, env_idx] = _as_observation(
            "DenseObservationStore", flat_tensor, data.shape[2], data.dtype, data.device
        )

    def read(self, pos: int, env_idx: int) -> th.Tensor:
        """Read a flattened observation, as a copy."""
        _check_position("DenseObservationStore", pos, env_idx, self._shape)
        return self._data[pos, env_idx].clone()

    def read_flat(self, flat_idx: int) -> th.Tensor:
        """Read by flattened index: all steps of the first environment, then those of the second."""
        env_idx, pos = divmod(flat_idx, self._shape[0])
        return self.read(pos, env_idx)

    def flatten(self) -> th.Tensor:
        """All observations in the order of Stable-Baselines3's ``swap_and_flatten``, as a copy."""
        # With one environment or one step, reshaping alone would return a view of the store.
        return self._data.swapaxes(0, 1).flatten(0, 1).clone(memory_format=th.contiguous_format)


class RawObservationStore:
    """
    Store compressed observations in a packed raw byte heap.

    :param buffer_size: number of steps
    :param n_envs: number of environments
    :param flat_len: elements of an observation
    :param elem_type: their dtype
    :param device: device of the observations
    :param field_offset: index of the field of a step that this store holds
    :param compress: ``compress(tensor, buffer, byte_start)``, see :class:`GpuCompressionMethod`
    :param decompress: ``decompress(buffer, metadata, elem_type, runs_type, arr_configs)``
    :param compression_method: the codec, to estimate the size of a heap for this store
    :param runs_type: passed to ``decompress``, as in the published package; payloads do not depend on it
    :param shared_heap: a heap that stores of several fields share; by default the store has its own
    :param n_fields: number of fields that share the heap
    """

    def __init__(
        self,
        buffer_size: int,
        n_envs: int,
        flat_len: int,
        elem_type: th.dtype,
        device: str | th.device,
        field_offset: int,
        compress: Callable[..., SlotMetadata],
        decompress: Callable[..., th.Tensor],
        compression_method: str = "rle",
        runs_type: th.dtype = th.uint16,
        shared_heap: SharedRawHeap | None = None,
        n_fields: int = 1,
    ) -> None:
        if not 0 <= field_offset < n_fields:
            raise ParameterError("RawObservationStore", "field_offset", field_offset, f"there are {n_fields} fields")
        self.device = as_device(device)
        self._shape, self._flat_len, self._elem_type, self._runs_type = (
            (buffer_size, n_envs),
            flat_len,
            elem_type,
            runs_type,
        )
        self._field_offset = field_offset
        self._compress, self._decompress = compress, decompress
        sizes = flat_len, elem_type, runs_type, compression_method
        self._owns_heap = shared_heap is None
        if shared_heap is None:
            n_cells = n_fields * buffer_size * n_envs
            shared_heap = SharedRawHeap(n_cells, estimate_total_heap_bytes(n_cells, *sizes), self.device)
        self.shared_heap = shared_heap
        self._staging = RawBuffer(estimate_max_slot_bytes(*sizes), self.device)
        self._metadata: dict[int, SlotMetadata] = {}

    def cell_id(self, pos: int, env_idx: int) -> int:
        """Cell of the heap that holds an observation."""
        _check_position("RawObservationStore", pos, env_idx, self._shape)
        steps, envs = self._shape
        return self._field_offset * steps * envs + pos * envs + env_idx

    def write(self, pos: int, env_idx: int, flat_tensor: th.Tensor) -> None:
        """Compress and store a flattened observation."""
        cell = self.cell_id(pos, env_idx)
        value = _as_observation("RawObservationStore", flat_tensor, self._flat_len, self._elem_type, self.device)
        metadata = self._compress(value, self._staging, 0)
        nbytes = metadata.payload_bytes
        payload = self._staging.region(0, nbytes).cpu().numpy()
        # Writes in arbitrary order leave holes in a ring. If packing is not worth it or not enough, the ring itself
        # drops the oldest payloads or refuses the write.
        if self.shared_heap.is_worth_packing([cell]):
            with suppress(HeapFullError):
                self.shared_heap.ensure_space(nbytes, [cell])
        self.shared_heap.reserve(np.array([cell]), nbytes)[:] = payload
        self.shared_heap.commit(np.array([nbytes]))
        self._metadata[cell] = metadata

    def read(self, pos: int, env_idx: int) -> th.Tensor:
        """Decompress a flattened observation."""
        cell, heap = self.cell_id(pos, env_idx), self.shared_heap
        (start,), (length,) = heap.locate(np.array([cell]))
        if not length:
            asked, found = f"read step {pos} of environment {env_idx}", "it was never written, or dropped to make room"
            raise BufferStateError("RawObservationStore", asked, found)
        configs = {"size": self._flat_len, "dtype": self._elem_type}
        metadata = self._located(cell, int(start))
        return self._decompress(heap.buffer, metadata, self._elem_type, self._runs_type, configs)

    def read_flat(self, flat_idx: int) -> th.Tensor:
        """Read by flattened index: all steps of the first environment, then those of the second."""
        env_idx, pos = divmod(flat_idx, self._shape[0])
        return self.read(pos, env_idx)

    def flatten(self) -> list[SlotMetadata | None]:
        """Metadata of all payloads in the order of Stable-Baselines3's ``swap_and_flatten``; nothing is decoded.

        :return: one entry per observation, ``None`` if it was never written or was dropped. Positions are valid until
            the next write
        """
        steps, envs = self._shape
        order = np.arange(self.cell_id(0, 0), self.cell_id(0, 0) + steps * envs).reshape(steps, envs).T.reshape(-1)
        starts, lengths = self.shared_heap.locate(order)
        places = zip(order.tolist(), starts.tolist(), lengths.tolist())
        return [self._located(cell, start) if length else None for cell, start, length in places]

    def _located(self, cell: int, start: int) -> SlotMetadata:
        return replace(self._metadata[cell], byte_start=start % self.shared_heap.capacity)

    def compact(self) -> None:
        """Pack the heap, unless others share it."""
        if self._owns_heap:
            self.shared_heap.compact()


def _check_position(owner: str, pos: int, env_idx: int, shape: tuple[int, int]) -> None:
    """Refuse a position outside a store.

    :param owner: the store, for the error
    :param pos: the step
    :param env_idx: the environment
    :param shape: number of steps and of environments
    """
    for name, value, count in (("pos", pos, shape[0]), ("env_idx", env_idx, shape[1])):
        if not 0 <= value < count:
            raise ParameterError(owner, name, value, f"it must be from 0 to {count - 1}")


def _as_observation(owner: str, value: th.Tensor, flat_len: int, dtype: th.dtype, device: th.device) -> th.Tensor:
    """Convert an observation to a contiguous flat tensor of the stored dtype; an inexact conversion is an error.

    :param owner: the store, for the error
    :param value: the observation
    :param flat_len: required number of elements
    :param dtype: stored dtype
    :param device: target device
    """
    if value.numel() != flat_len:
        raise ObservationError(owner, "flat_tensor", f"{value.numel()} elements", f"{flat_len} elements")
    # Contiguous: kernels take addresses and ignore strides.
    flat = value.detach().reshape(-1).contiguous()
    if flat.dtype != dtype:
        cast = flat.to(dtype)
        if not th.equal(cast.to(flat.dtype), flat):
            raise ObservationError(owner, "flat_tensor", f"values of {flat.dtype}", f"what {dtype} can hold")
        flat = cast
    return flat.to(device)

"""``RawObservationStore``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import numpy as np
import torch as th

from sb3_extra_buffers.errors import BufferStateError, HeapFullError, ParameterError
from sb3_extra_buffers.gpu_buffers.devices import as_device
from sb3_extra_buffers.gpu_buffers.memory import SharedRawHeap
from sb3_extra_buffers.gpu_buffers.metadata import SlotMetadata
from sb3_extra_buffers.gpu_buffers.observation_stores.checks import as_observation, check_place
from sb3_extra_buffers.gpu_buffers.raw_buffer import RawBuffer
from sb3_extra_buffers.gpu_buffers.utils import estimate_max_slot_bytes, estimate_total_heap_bytes


class RawObservationStore:
    """
    Store compressed observations in a packed raw byte heap.

    :param buffer_size: how many steps there are
    :param n_envs: how many environments
    :param flat_len: elements of an observation
    :param elem_type: their dtype
    :param device: where they are kept
    :param field_offset: which field of a step this store holds; the first is 0
    :param compress: ``compress(tensor, buffer, byte_start)``, see :class:`GpuCompressionMethod`
    :param decompress: ``decompress(buffer, metadata, elem_type, runs_type, arr_configs)``
    :param compression_method: the codec, for the size of a heap of its own
    :param runs_type: what ``decompress`` is told, as in the published package; payloads do not depend on it
    :param shared_heap: a heap that stores of several fields share; by default one for this store alone
    :param n_fields: how many fields share the heap
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
        """The cell of the heap that an observation is in."""
        check_place("RawObservationStore", pos, env_idx, self._shape)
        steps, envs = self._shape
        return self._field_offset * steps * envs + pos * envs + env_idx

    def write(self, pos: int, env_idx: int, flat_tensor: th.Tensor) -> None:
        """Compress and store a flattened observation."""
        cell = self.cell_id(pos, env_idx)
        value = as_observation("RawObservationStore", flat_tensor, self._flat_len, self._elem_type, self.device)
        metadata = self._compress(value, self._staging, 0)
        nbytes = metadata.payload_bytes
        payload = self._staging.region(0, nbytes).cpu().numpy()
        # In no particular order, a ring is full of holes. What does not fit even without them, or is not worth closing
        # them, is its own decision: it drops the oldest, or refuses.
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
        metadata = replace(self._metadata[cell], byte_start=int(start) % heap.capacity)
        return self._decompress(
            heap.buffer, metadata, self._elem_type, self._runs_type, {"size": self._flat_len, "dtype": self._elem_type}
        )

    def read_flat(self, flat_idx: int) -> th.Tensor:
        """Read by flattened index: all steps of the first environment, then those of the second."""
        env_idx, pos = divmod(flat_idx, self._shape[0])
        return self.read(pos, env_idx)

    def flatten(self) -> th.Tensor:
        """All observations in the order of Stable-Baselines3's ``swap_and_flatten``, decompressed."""
        steps, envs = self._shape
        return th.stack([self.read(pos, env_idx) for env_idx in range(envs) for pos in range(steps)])

    def compact(self) -> None:
        """Pack the heap, unless others share it."""
        if self._owns_heap:
            self.shared_heap.compact()

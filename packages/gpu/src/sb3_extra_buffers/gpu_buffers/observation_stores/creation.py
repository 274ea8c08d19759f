"""From the name of a codec to a store."""

from __future__ import annotations

from collections.abc import Callable

import torch as th

from sb3_extra_buffers.gpu_buffers.callables import compressor, decompressor
from sb3_extra_buffers.gpu_buffers.memory import SharedRawHeap
from sb3_extra_buffers.gpu_buffers.metadata import SlotMetadata
from sb3_extra_buffers.gpu_buffers.observation_stores.dense import DenseObservationStore
from sb3_extra_buffers.gpu_buffers.observation_stores.raw import RawObservationStore


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
    :param buffer_size: how many steps there are
    :param n_envs: how many environments
    :param flat_len: elements of an observation
    :param elem_type: their dtype
    :param device: where they are kept
    :param field_offset: which field of a step this store holds
    :param compress: instead of the codec's own
    :param decompress: instead of the codec's own
    :param runs_type: what ``decompress`` is told
    :param shared_heap: a heap that stores of several fields share
    :param n_fields: how many fields share it
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

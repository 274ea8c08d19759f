"""The observations of one buffer, on a device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.compressed.options import StorageOptions
from sb3_extra_buffers.compressed.spaces import NO_KEY, parts_of, shape_of
from sb3_extra_buffers.compressed.storage import ObservationStorage, PerStep
from sb3_extra_buffers.errors import DeviceError
from sb3_extra_buffers.gpu_buffers.arrays import DeviceArray, check_dtype
from sb3_extra_buffers.gpu_buffers.codecs import DEVICE, check_decode_on, decoder_for
from sb3_extra_buffers.gpu_buffers.codecs import names as device_codecs
from sb3_extra_buffers.gpu_buffers.compiled import bind_compiled
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.gpu_buffers.reader import DeviceReader
from sb3_extra_buffers.stores import Plane


class DeviceStorage(ObservationStorage):
    """Arrays for every key of an observation space, read as tensors.

    :param owner: the buffer's class, for messages
    :param space: the observation space
    :param rows: how many steps the buffer holds
    :param n_envs: how many environments are stored side by side
    :param options: how to store; its heap is one on a device
    :param per_step: what is stored per step
    :param device: where observations are kept
    :param decode_on: ``"auto"``, ``"device"`` or ``"host"``
    """

    _array_type = DeviceArray
    _bind = staticmethod(bind_compiled)

    def __init__(
        self,
        owner: str,
        space: spaces.Space[Any],
        rows: int,
        n_envs: int,
        options: StorageOptions,
        per_step: PerStep,
        device: th.device,
        decode_on: str,
    ) -> None:
        check_decode_on(owner, decode_on)
        parts = parts_of(space)
        for part in parts.values():
            check_dtype(owner, np.dtype(part.dtype), device)
        super().__init__(owner, space, rows, n_envs, options, per_step)
        for key, part in parts.items():
            codec, count = options.codec(None if key == NO_KEY else key), math.prod(shape_of(part))
            if codec is not None and count:
                # What cannot be decoded there is an error now, not when a batch is needed.
                decoder_for(bind(codec, CellSpec(np.dtype(part.dtype), count)), device, decode_on)
        for array in self.observations.values():
            check_dtype(owner, array.stored_dtype, device)
        if decode_on == DEVICE:
            self._refuse_automatic_codecs(options, device)
        self.reader = DeviceReader(self.device_heap, device, decode_on)
        for array in self._arrays():
            assert isinstance(array, DeviceArray)
            array.reader = self.reader

    @property
    def device_heap(self) -> DevicePayloads | None:
        """Where payloads are; ``None`` if observations have no elements."""
        assert self.heap is None or isinstance(self.heap, DevicePayloads)
        return self.heap

    def read_both(self, cells: NDArray[Any]) -> dict[str, list[Any]]:
        found = {}
        for key, array in self.observations.items():
            following = self.next_observations[key]
            assert isinstance(array, DeviceArray)
            if array.store is None or following.store is None or not len(cells):
                found[key] = [array._deliver(cells), array._deliver(cells)]
                continue
            as_float = self.as_float and array.dtype == array.stored_dtype == np.uint8
            rows = self.reader.read([(array.store, cells), (following.store, cells)], as_float=as_float)
            found[key] = [array.values(part, cells.shape) for part in rows.chunk(2)]
        return found

    def _refuse_automatic_codecs(self, options: StorageOptions, device: th.device) -> None:
        """What will be chosen by the first observations may have no path on the device."""
        for key, array in self.observations.items():
            is_open = options.codec(None if key == NO_KEY else key) is None
            if is_open and array.store is not None and not isinstance(array.store, Plane):
                problem = (
                    f"which codec {key or 'observations'} will have is not known yet, nor whether it can decode there"
                )
                raise DeviceError(str(device), problem, f"Name one of: {', '.join(device_codecs())}.")

    def to(self, device: th.device) -> None:
        """Move everything to another device."""
        if self.worker is not None:
            self.worker.settle()
        if self.device_heap is not None:
            self.device_heap.to(device)
        self.reader.move(device)

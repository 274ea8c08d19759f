"""The observations of one buffer, on a device."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.codecs import CellSpec, Codec, bind, registry
from sb3_extra_buffers.compressed.options import StorageOptions
from sb3_extra_buffers.compressed.storage import NO_KEY, ObservationStorage, PerStep, parts_of, shape_of
from sb3_extra_buffers.errors import DeviceError, MissingExtraError, PluginError
from sb3_extra_buffers.gpu_buffers.arrays import DeviceArray, check_dtype
from sb3_extra_buffers.gpu_buffers.codecs import DEVICE, check_decode_on, decoder_for
from sb3_extra_buffers.gpu_buffers.codecs import names as device_codecs
from sb3_extra_buffers.gpu_buffers.codecs.rle import bind_compiled
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.gpu_buffers.reader import DeviceReader
from sb3_extra_buffers.heaps import Heap
from sb3_extra_buffers.stores import SPEED, FrameStore, Preference


class DeviceStorage(ObservationStorage):
    """Arrays for every key of an observation space, read as tensors.

    :param owner: the buffer's class, for messages
    :param space: the observation space
    :param steps: number of steps the buffer holds
    :param n_envs: number of environments
    :param options: how to store; the heap is one on a device
    :param per_step: content of a step
    :param device: where observations are kept
    :param decode_on: ``"auto"``, ``"device"`` or ``"host"``
    :param heap: the heap of a buffer that is unpickled
    """

    _array_type = DeviceArray
    _bind = staticmethod(bind_compiled)

    def __init__(
        self,
        owner: str,
        space: spaces.Space[Any],
        steps: int,
        n_envs: int,
        options: StorageOptions,
        per_step: PerStep,
        device: th.device,
        decode_on: str,
        heap: Heap | None = None,
    ) -> None:
        check_decode_on(owner, decode_on)
        self._decode_on = decode_on
        parts = parts_of(space)
        for part in parts.values():
            check_dtype(owner, np.dtype(part.dtype), device)
        super().__init__(owner, space, steps, n_envs, options, per_step, heap)
        #: Requested codecs.
        self._codecs: list[Codec] = []
        for key, part in parts.items():
            codec, count = options.codec(None if key == NO_KEY else key), math.prod(shape_of(part))
            if codec is not None and count:
                self._codecs.append(bind(codec, CellSpec(np.dtype(part.dtype), count)))
        self._check_decoders(device)
        for array in self.observations.values():
            check_dtype(owner, array.stored_dtype, device)
        if decode_on == DEVICE:
            self._refuse_codecs_of_the_host(options, device)
        self.reader = DeviceReader(self.device_heap, device, decode_on, options.threads)
        for array in (*self.observations.values(), *self.next_observations.values()):
            assert isinstance(array, DeviceArray)
            array.reader = self.reader

    @property
    def device_heap(self) -> DevicePayloads | None:
        """Where payloads are; ``None`` if observations have no elements."""
        assert self.heap is None or isinstance(self.heap, DevicePayloads)
        return self.heap

    def read_both(self, cells: NDArray[Any], overlap: bool = False) -> dict[str, list[Any]]:
        del overlap  # the decoders of devices write separate tensors
        found = {}
        for part in self._parts:
            array, store = part.observations, part.store
            assert isinstance(array, DeviceArray)
            if store is None or not len(cells):
                found[part.key] = [array._deliver(cells), array._deliver(cells)]
                continue
            as_float = self.as_float and array.dtype == array.stored_dtype == np.uint8
            rows = self.reader.read([(store, cells, False), (store, cells, True)], as_float=as_float)
            found[part.key] = [array.values(half, cells.shape) for half in rows.chunk(2)]
        return found

    def restore_stores(self, state: State) -> None:
        super().restore_stores(state)
        if self._decode_on != DEVICE:
            return
        for frames in (store.active for store in self.stores()):
            if isinstance(frames, FrameStore) and not frames.chunks.are_plain(np.arange(frames.chunks.slots)).all():
                problem = "what was saved has chunks of frames that went through a codec, which decode on the host only"
                raise DeviceError(str(self.reader.device), problem, "Load it with decode_on='auto'.")

    def _preference(self, owner: str, prefer: str) -> Preference:
        found = super()._preference(owner, prefer)
        # Compressed chunks are decoded on the host.
        return replace(found, fallback=None) if self._decode_on == DEVICE else found

    def _check_decoders(self, device: th.device) -> None:
        """Refuse a device that cannot decode a codec: that is an error now, not when a batch is needed."""
        for codec in self._codecs:
            decoder_for(codec, device, self._decode_on)

    def _refuse_codecs_of_the_host(self, options: StorageOptions, device: th.device) -> None:
        """Refuse automatic choices: the device may not be able to decode their codecs."""
        for key, array in self.observations.items():
            codec, name = options.codec(None if key == NO_KEY else key), key or "observations"
            if key in self.frame_keys:
                is_plain = options.preferred == SPEED if codec is None else registry.load(codec.name).identity
                if not is_plain:
                    through = f"prefer={options.preferred!r}" if codec is None else f"the codec {codec.name!r}"
                    problem = f"frames of {name} have no path there with {through}: their chunks go through a codec"
                    hint = "Use compression_method='auto' and prefer='speed', or decode_on='auto'."
                    raise DeviceError(str(device), problem, hint)
            elif codec is None and array.store is not None:
                problem = f"which codec {name} will have is not known yet, nor whether it can decode there"
                raise DeviceError(str(device), problem, f"Name one of: {', '.join(device_codecs())}.")

    def to(self, device: th.device) -> None:
        """Move everything to another device; nothing if it cannot be read there."""
        try:
            self._check_decoders(device)
        except (DeviceError, MissingExtraError, PluginError) as error:
            hint = "Save the buffer, and load it with this buffer_device and decode_on='auto'."
            raise DeviceError(str(device), f"decode_on='device' is not possible there ({error})", hint) from error
        if self.worker is not None:
            self.worker.wait()
        if self.device_heap is not None:
            self.device_heap.to(device)
        self.reader.move(device)

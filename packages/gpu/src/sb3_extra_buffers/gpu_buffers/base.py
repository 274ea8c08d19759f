"""The base of all buffers on a device."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.vec_env import VecNormalize

from sb3_extra_buffers.compressed.base import BaseCompressedBuffer, locked
from sb3_extra_buffers.compressed.storage import PerStep
from sb3_extra_buffers.errors import DeviceError, ParameterError
from sb3_extra_buffers.gpu_buffers.arrays import as_array
from sb3_extra_buffers.gpu_buffers.codecs import AUTO, DEVICE
from sb3_extra_buffers.gpu_buffers.compression_methods import compressor, decompressor
from sb3_extra_buffers.gpu_buffers.devices import CPU, as_device
from sb3_extra_buffers.gpu_buffers.memory import DevicePayloads
from sb3_extra_buffers.gpu_buffers.memory.ring import EVICT, RAISE
from sb3_extra_buffers.gpu_buffers.storage import DeviceStorage
from sb3_extra_buffers.gpu_buffers.utils import find_gpu_buffer_dtypes, torch_dtype_to_numpy
from sb3_extra_buffers.heaps import Heap

__all__ = ["BaseGpuBuffer", "find_gpu_buffer_dtypes"]

_CONTINUES = "It was saved with decode_on='device', and goes on with decode_on='auto'."


class BaseGpuBuffer:
    """
    The base of all buffers on a device. By itself, it configures a pair of callables that put one observation into a
    :class:`RawBuffer` and take it out again.

    :param compression_method: A codec such as ``"rle"`` or ``"zstd-3"``; ``None`` configures nothing
    :param compression_kwargs: Parameters of the codec, for instance ``{"level": 3}``
    :param decompression_kwargs: Accepted for old scripts, without effect
    :param flatten_config: ``size`` or ``shape`` of an observation, and its ``dtype``
    """

    def __init__(
        self,
        compression_method: str | None = None,
        compression_kwargs: Mapping[str, Any] | None = None,
        decompression_kwargs: Mapping[str, Any] | None = None,
        flatten_config: Mapping[str, Any] | None = None,
    ) -> None:
        self.flatten_config = dict(flatten_config or {})
        if compression_method is not None:
            self.compress = compressor(compression_method, compression_kwargs)
            self.decompress = decompressor(compression_method, compression_kwargs, decompression_kwargs)


class DeviceObservations(BaseGpuBuffer, BaseCompressedBuffer):
    """The common part of replay and rollout buffers on a device."""

    _replaceable = ("buffer_device", "decode_on", "threads")
    _transient = ("_asked_device",)
    _storage: DeviceStorage
    _asked_device: th.device
    _decode_on: str

    @property
    def buffer_device(self) -> th.device:
        """Where observations are kept."""
        return self._storage.reader.device

    @property
    def shared_heap(self) -> DevicePayloads | None:
        """Where their payloads are."""
        return self._storage.device_heap

    @locked
    def to(self, device: th.device | str) -> Any:
        """
        Move all observations to another device, and let samples be there.

        :param device: PyTorch device
        """
        found = as_device(device)
        self._storage.to(found)
        self.device = found
        return self

    def to_torch(self, array: Any, copy: bool = True) -> th.Tensor:
        """Convert to a tensor on the device of the model.

        :param array: an array, or a tensor that was made for this batch
        :param copy: whether to copy an array that is not part of a batch
        """
        if isinstance(array, th.Tensor):
            batch = array if self._storage.worker is None else self._storage.reader.take(array)
            # Only on CUDA do later operations of the stream wait for an asynchronous copy.
            return batch.to(self.device, non_blocking=self.device.type == "cuda")
        if self._is_sampling and self.device.type == "cuda" and self.buffer_device.type == "cuda":
            return self._storage.reader.uploaded(array).to(self.device, non_blocking=True)
        return super().to_torch(array, copy)

    @staticmethod
    def _normalize_obs(obs: Any, env: VecNormalize | None = None) -> Any:
        if env is None:
            return obs
        # Its statistics are on the host, as numpy arrays.
        found = {key: as_array(part) for key, part in obs.items()} if isinstance(obs, dict) else as_array(obs)
        return env.normalize_obs(found)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_asked_device": self.buffer_device}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        try:
            as_device(state["_asked_device"])
        except DeviceError as error:
            # The heap has warned that it is on the CPU now, which may not be able to decode the device's codecs.
            state["_asked_device"] = CPU
            if state["_decode_on"] == DEVICE:
                state["_decode_on"] = AUTO
                warnings.warn(f"{error} {_CONTINUES}", stacklevel=2)
        super().__setstate__(state)
        try:
            as_device(self.device)
        except DeviceError as error:
            warnings.warn(f"{error} The buffer delivers to the CPU.", stacklevel=2)
            self.device = CPU

    def _arguments(self) -> dict[str, Any]:
        found = super()._arguments()
        place = dict(found.pop("heap_kwargs") or {})
        del found["heap"]
        found |= {"buffer_device": str(self.buffer_device), "heap_bytes": place.get("capacity")}
        return {**found, "on_full": place.get("on_full", RAISE), "decode_on": self._decode_on}

    @classmethod
    def _replaced(cls, arguments: dict[str, Any], replaced: Mapping[str, Any]) -> dict[str, Any]:
        found = super()._replaced(arguments, replaced)
        if arguments.get("heap_bytes") is None:
            found["on_full"] = RAISE  # the default, whatever it was when the buffer was saved
        try:
            as_device(arguments["buffer_device"])
        except DeviceError as error:
            if "buffer_device" not in found:
                # A checkpoint from a machine with a device is readable on one without.
                lost = arguments.get("decode_on") == DEVICE and "decode_on" not in found
                message = f"{error} What was stored there is kept on the CPU."
                warnings.warn(f"{message} {_CONTINUES}" if lost else message, stacklevel=5)
                found["buffer_device"] = CPU
                if lost:
                    found["decode_on"] = AUTO
        return found

    def _new_storage(self, per_step: PerStep, heap: Heap | None = None) -> DeviceStorage:
        name, options, device = type(self).__name__, self._options, self._asked_device
        size = self.buffer_size, self.n_envs
        return DeviceStorage(name, self.observation_space, *size, options, per_step, device, self._decode_on, heap)

    def _place(
        self,
        device: th.device | str,
        buffer_device: th.device | str | None,
        n_cells: int,
        heap_bytes: int | None,
        max_slot_bytes: int | None,
        on_full: str,
        decode_on: str,
        unexpected: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Check the arguments about the device, and return the ``heap`` and ``heap_kwargs`` of compressed buffers."""
        name = type(self).__name__
        for word in ("heap", "heap_kwargs"):
            if word in unexpected:
                hint = "Use buffer_device and heap_bytes."
                raise ParameterError(
                    name, word, unexpected[word], "where observations go is a matter of the device", hint
                )
        if on_full not in (EVICT, RAISE):
            raise ParameterError(name, "on_full", on_full, f"it must be {EVICT!r} or {RAISE!r}")
        self._asked_device = as_device(device if buffer_device is None else buffer_device)
        self._decode_on = decode_on
        if max_slot_bytes is not None:
            if isinstance(max_slot_bytes, bool) or not isinstance(max_slot_bytes, (int, np.integer)):
                raise ParameterError(name, "max_slot_bytes", max_slot_bytes, "it must be an integer, a number of bytes")
            warnings.warn(
                f"{name}: max_slot_bytes is deprecated; it is taken as heap_bytes = {n_cells} cells * max_slot_bytes. "
                "Leave both out: the heap then grows with what is stored.",
                DeprecationWarning,
                stacklevel=3,
            )
            if heap_bytes is None:
                heap_bytes = n_cells * max_slot_bytes
        if heap_bytes is None:
            if on_full != RAISE:
                allowed = "it says what a heap of limited size does, and without heap_bytes there is no limit"
                raise ParameterError(name, "on_full", on_full, allowed, "Give heap_bytes too, or leave it out.")
            return {"heap": "device", "heap_kwargs": {"device": str(self._asked_device)}}
        place = {"capacity": heap_bytes, "device": str(self._asked_device), "on_full": on_full}
        return {"heap": "device-ring", "heap_kwargs": place}


def host_dtypes(dtypes: Any) -> Any:
    """``dtypes`` as core's buffers take them: dtypes of torch become those of numpy."""
    if isinstance(dtypes, Mapping):
        return {key: host_dtypes(part) for key, part in dtypes.items()}
    return torch_dtype_to_numpy(dtypes) if isinstance(dtypes, th.dtype) else dtypes


def layout_of(layout: str | None, method: Any) -> str:
    """The layout: frames only if requested, or with the automatic choice of a codec."""
    if layout is not None:
        return layout
    return "auto" if method == "auto" else "cells"


def cells_of(buffer_size: int, n_envs: int, per_step: int) -> int:
    """How many observations a buffer of so many transitions has."""
    return max(buffer_size // max(n_envs, 1), 1) * n_envs * per_step

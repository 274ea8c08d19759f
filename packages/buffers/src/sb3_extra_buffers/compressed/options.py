"""How observations are to be stored: what all compressed buffers take besides the arguments of Stable-Baselines3."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sb3_extra_buffers.arrays.casting import storable
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.stores import AUTO, MIN_FRAMES_NBYTES, MIN_FRAMES_STEPS, SPEED, Place, parse_request, preference

#: What one payload stands for: an observation, or some frames of a stream of them.
CELLS, FRAMES = "cells", "frames"
LAYOUTS = (AUTO, CELLS, FRAMES)


@dataclass(frozen=True)
class StorageOptions:
    """What a user may say about storage, as it was said. The classes of the buffers explain each word."""

    dtypes: Any = None
    normalize_images: bool = False
    compression_method: Any = AUTO
    compression_kwargs: Mapping[str, Any] | None = None
    decompression_kwargs: Mapping[str, Any] | None = None
    output_dtype: str = "raw"
    heap: str = "memory"
    heap_kwargs: Mapping[str, Any] | None = None
    threads: int | None = None
    layout: str = AUTO
    prefer: str = SPEED
    prefetch: bool = False

    def check(self, owner: str, keys: tuple[str, ...] | None) -> None:
        """Refuse what no buffer over these keys could do.

        :param owner: the buffer's class, for errors
        :param keys: the keys of a Dict space, ``None`` for any other
        """
        if self.output_dtype not in ("raw", "float"):
            raise ParameterError(owner, "output_dtype", self.output_dtype, "it must be 'raw' or 'float'")
        if self.layout not in LAYOUTS:
            raise ParameterError(owner, "layout", self.layout, f"it must be one of: {', '.join(LAYOUTS)}")
        preference(owner, self.prefer)
        if self.layout == CELLS and self.prefer != SPEED:
            allowed = "it says how frames are stored, and layout='cells' stores none"
            raise ParameterError(owner, "prefer", self.prefer, allowed, "Leave one of them out.")
        if self.heap_kwargs is not None and not isinstance(self.heap_kwargs, Mapping):
            raise ParameterError(owner, "heap_kwargs", self.heap_kwargs, "it must be a dictionary")
        for name, value in (("compression_method", self.compression_method), ("dtypes", self.dtypes)):
            if not self._is_per_key(value):
                continue
            unknown = sorted(set(value) - set(keys or ()))
            if unknown:
                known = "the space has no keys" if keys is None else f"the keys of the space are {', '.join(keys)}"
                raise ParameterError(owner, name, dict(value), f"{known}, there is no {unknown[0]!r}")
        if self._is_per_key(self.compression_method) and self.compression_kwargs:
            hint = 'Put the level into the name, as in {"image": "zstd-3"}.'
            allowed = "they cannot be told apart for several codecs"
            raise ParameterError(owner, "compression_kwargs", dict(self.compression_kwargs), allowed, hint)

    def codec(self, key: str | None) -> CodecSpec | None:
        """Which codec was asked for; ``None`` leaves the choice to us.

        :param key: a key of a Dict space, ``None`` for any other
        """
        method = self.compression_method
        if self._is_per_key(method):
            return parse_request(method.get(key, AUTO), None, self.decompression_kwargs)
        return parse_request(method, self.compression_kwargs, self.decompression_kwargs)

    def wants_frames(self, shape: tuple[int, ...], dtype: np.dtype[Any], codec: CodecSpec | None, rows: int) -> bool:
        """Whether observations are to be stored as frames.

        :param shape: of one observation
        :param dtype: of its elements, as they are stored
        :param codec: what was asked for
        :param rows: how many steps the buffer has
        """
        nbytes = math.prod(shape) * dtype.itemsize
        if self.layout == CELLS or not nbytes or len(shape) < 2:
            return False
        if self.layout == FRAMES:
            return True
        # Who asks for no codec wants observations as they are.
        return nbytes >= MIN_FRAMES_NBYTES and rows >= MIN_FRAMES_STEPS and not (codec and codec.name == "none")

    @property
    def may_be_cells(self) -> bool:
        """Whether images that are not stacked may become cells: nobody asked for frames, nor how to store them."""
        return self.layout == AUTO and self.prefer == SPEED

    def stored_dtype(self, owner: str, key: str | None, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Which dtype to store: that of the space, unless a narrower one was asked for.

        :param owner: the buffer's class, for warnings
        :param key: a key of a Dict space, ``None`` for any other
        :param dtype: of the space
        """
        asked = self._asked_dtype(key)
        if asked is None or np.can_cast(dtype, asked, "safe"):
            return dtype  # a wider type would hold nothing more
        if dtype.kind == "f" and asked.kind != "f":
            # The published package asked for bytes by default, and its examples still do, also for float observations.
            warnings.warn(
                f"{owner}: dtypes asks for {asked}, which cannot hold observations of {dtype}. They are stored as "
                f"{dtype}, losslessly. Leave dtypes out: the space decides.",
                stacklevel=5,  # who made the buffer
            )
            return dtype
        return asked

    @property
    def place(self) -> Place:
        """Where payloads shall live."""
        return Place(self.heap, dict(self.heap_kwargs or {}), self.threads)

    @property
    def as_float(self) -> bool:
        """Whether observations are handed out as float32."""
        return self.output_dtype == "float" or self.normalize_images

    def _asked_dtype(self, key: str | None) -> np.dtype[Any] | None:
        asked = self.dtypes
        if self._is_per_key(asked):
            asked = asked.get(key)
        elif isinstance(asked, Mapping):
            # One pair for a whole Dict space cannot be meant for each of its keys; they keep their own dtypes.
            asked = asked.get("elem_type") if key is None else None
        elif key is not None:
            asked = None
        return None if asked is None else storable(asked)

    @staticmethod
    def _is_per_key(value: Any) -> bool:
        return isinstance(value, Mapping) and not {"elem_type", "runs_type"} & set(value)

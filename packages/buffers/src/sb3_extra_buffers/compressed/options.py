"""Arguments about storage, which all compressed buffers take besides those of Stable-Baselines3."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sb3_extra_buffers.arrays.casting import storable
from sb3_extra_buffers.codecs import CodecSpec, registry
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.stores import (
    AUTO,
    BALANCED,
    MIN_FRAMES_NBYTES,
    MIN_FRAMES_STEPS,
    SPEED,
    parse_request,
    preference,
)

#: Content of one payload: an observation, or consecutive frames of an environment.
CELLS, FRAMES = "cells", "frames"
LAYOUTS = (AUTO, CELLS, FRAMES)


@dataclass(frozen=True)
class StorageOptions:
    """Arguments about storage, as they were given. The docstring of ``CompressedReplayBuffer`` explains them."""

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
    prefer: str | None = None
    prefetch: bool = False

    @classmethod
    def among(cls, arguments: Mapping[str, Any]) -> StorageOptions:
        """The options among the arguments of a buffer."""
        return cls(**{field.name: arguments[field.name] for field in fields(cls)})

    def check(self, owner: str, keys: tuple[str, ...] | None) -> None:
        """Refuse options that no buffer can have. ``keys`` are those of a Dict space, ``None`` for any other."""
        if self.output_dtype not in ("raw", "float"):
            raise ParameterError(owner, "output_dtype", self.output_dtype, "it must be 'raw' or 'float'")
        if self.layout not in LAYOUTS:
            raise ParameterError(owner, "layout", self.layout, f"it must be one of: {', '.join(LAYOUTS)}")
        preference(owner, self.preferred)
        if self.heap_kwargs is not None and not isinstance(self.heap_kwargs, Mapping):
            raise ParameterError(owner, "heap_kwargs", self.heap_kwargs, "it must be a dictionary")
        for name, value in (("compression_method", self.compression_method), ("dtypes", self.dtypes)):
            unknown = sorted(set(value) - set(keys or ())) if _is_per_key(value) else []
            if unknown:
                known = "the space has no keys" if keys is None else f"the keys of the space are {', '.join(keys)}"
                raise ParameterError(owner, name, dict(value), f"{known}, there is no {unknown[0]!r}")
        if _is_per_key(self.compression_method) and self.compression_kwargs:
            hint = 'Put the level into the name, as in {"image": "zstd-3"}.'
            allowed = "they cannot be told apart for several codecs"
            raise ParameterError(owner, "compression_kwargs", dict(self.compression_kwargs), allowed, hint)

    @property
    def preferred(self) -> str:
        """What was asked for, or the default."""
        if self.prefer is not None:
            return self.prefer
        return SPEED if self.layout == FRAMES else BALANCED

    def codec(self, key: str | None) -> CodecSpec | None:
        """The requested codec of a key, or of a space without keys (``None``); ``None`` for an automatic choice."""
        method = self.compression_method
        if _is_per_key(method):
            return parse_request(method.get(key, AUTO), None, self.decompression_kwargs)
        return parse_request(method, self.compression_kwargs, self.decompression_kwargs)

    def wants_frames(self, shape: tuple[int, ...], dtype: np.dtype[Any], codec: CodecSpec | None, steps: int) -> bool:
        """Whether observations of this shape and stored dtype become frames, in a buffer of this many steps."""
        nbytes = math.prod(shape) * dtype.itemsize
        if self.layout == CELLS or not nbytes or len(shape) < 2:
            return False
        if self.layout == FRAMES:
            return True
        # A codec that changes nothing asks for observations without any encoding.
        is_identity = codec is not None and registry.load(codec.name).identity
        return nbytes >= MIN_FRAMES_NBYTES and steps >= MIN_FRAMES_STEPS and not is_identity

    def stored_dtype(self, owner: str, key: str | None, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype to store: that of the space, which is given, unless a narrower one is requested."""
        dtypes = self.dtypes
        if _is_per_key(dtypes):
            dtypes = dtypes.get(key)
        elif key is not None:  # one dtype for a whole Dict space cannot be meant for each of its keys
            dtypes = None
        elif isinstance(dtypes, Mapping):
            dtypes = dtypes.get("elem_type")
        asked = dtype if dtypes is None else storable(dtypes)
        if np.can_cast(dtype, asked, "safe"):
            return dtype  # a wider type would hold nothing more
        if dtype.kind == "f" and asked.kind != "f":
            # The published package asked for bytes by default, and its examples still do, also for float observations.
            warnings.warn(
                f"{owner}: dtypes asks for {asked}, which cannot hold observations of {dtype}. They are stored as "
                f"{dtype}, losslessly. Leave dtypes out: the space decides.",
                stacklevel=5,  # the caller of the buffer's constructor
            )
            return dtype
        return asked


def _is_per_key(value: Any) -> bool:
    return isinstance(value, Mapping) and not {"elem_type", "runs_type"} & set(value)

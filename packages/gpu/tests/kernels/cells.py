"""Cells and payloads for the tests of kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from sb3_extra_buffers.codecs import CellSpec, bind

KINDS = ("constant", "alternating", "random", "runs", "frame")


def make(kind: str, dtype: str, count: int, seed: int = 0) -> np.ndarray:
    """A cell of some kind, as elements of a dtype."""
    random, element = np.random.default_rng((seed, count, *kind.encode())), np.arange(count)
    if kind == "constant":
        numbers = np.full(count, 7)
    elif kind == "alternating":
        numbers = element % 2
    elif kind == "random":
        numbers = random.integers(0, 256, count)
    elif kind == "runs":
        numbers = np.cumsum(random.random(count) < 0.05) % 251
    else:  # a background with a few things on it, in lines of 84
        numbers = np.where(element // 84 % 7 < 3, 30, 144)
        numbers[(element % 84 > 60) & (element % 84 < 60 + element // 84 % 20)] = 200
    if dtype == "g":  # its padding would be whatever was in memory
        return np.repeat(numbers.astype("f8"), np.dtype("g").itemsize // 8).view("g")
    return numbers.astype(dtype)


def encode(cells: Sequence[np.ndarray]) -> list[bytes]:
    """What the core makes of cells."""
    codec = bind("rle", CellSpec(cells[0].dtype, cells[0].size))
    return [bytes(codec.encode(cell)) for cell in cells]


def decode(payload: bytes, dtype: str, count: int) -> bytes:
    """What the core makes of a payload."""
    out = bytearray(count * np.dtype(dtype).itemsize)
    bind("rle", CellSpec(dtype, count)).decode_into(payload, out)
    return bytes(out)


def tensor(data: bytes) -> torch.Tensor:
    """A tensor with memory of its own: a byte too many is then out of bounds, and not in the next payload."""
    return torch.from_numpy(np.frombuffer(data, np.uint8).copy()).clone()


def addresses(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Where tensors are."""
    return torch.tensor([each.data_ptr() for each in tensors], dtype=torch.int64)


def lengths(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """How long tensors are."""
    return torch.tensor([len(each) for each in tensors], dtype=torch.int64)


def rows(cells: Sequence[np.ndarray]) -> torch.Tensor:
    """The bytes of cells, a row for each."""
    return tensor(b"".join(cell.tobytes() for cell in cells)).view(len(cells), -1)


def few_tiles(nbytes: int) -> int:
    """A tile of which a cell has no more than four, and more than one if it can: tiles are what takes time here."""
    return max(16, 1 << (max(nbytes // 3, 1) - 1).bit_length())

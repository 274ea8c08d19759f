"""``DeviceArray``: an array of compressed cells that hands out tensors on a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray

from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.arrays.indexing import CellNumbers
from sb3_extra_buffers.errors import DeviceError, ParameterError
from sb3_extra_buffers.gpu_buffers.reader import DeviceReader
from sb3_extra_buffers.gpu_buffers.utils import numpy_dtype_to_torch
from sb3_extra_buffers.memory import Indices


class DeviceArray(CompressedArray):
    """An array of compressed cells: reading returns tensors, writing takes arrays. ``numpy.asarray`` works, too."""

    reader: DeviceReader

    def _deliver(self, cells: Indices) -> th.Tensor:
        if self.store is None or not cells.size:
            empty = np.zeros(cells.shape + self._item, self.dtype)
            return th.from_numpy(empty).to(self.reader.device)
        return self.values(self.reader.read([(self.store, cells.reshape(-1), self._is_next)]), cells.shape)

    def values(self, rows: th.Tensor, shape: tuple[int, ...]) -> th.Tensor:
        """Rows of bytes as cells of this array; rows of floats stay floats.

        :param rows: contiguous
        :param shape: of the cells
        """
        if rows.dtype == th.float32:
            return rows.view(shape + self._item)
        stored = rows.view(numpy_dtype_to_torch(self._stored)).view(shape + self._item)
        return stored.to(numpy_dtype_to_torch(self.dtype))

    def _get_inside(self, key: Any) -> th.Tensor:
        return th.from_numpy(np.asarray(super()._get_inside(key))).to(self.reader.device)

    def _like(self, cells: Indices | CellNumbers, item: tuple[int, ...]) -> CompressedArray:
        found = super()._like(cells, item)
        assert isinstance(found, DeviceArray)
        found.reader = self.reader
        return found


def check_dtype(owner: str, dtype: np.dtype[Any], device: th.device) -> None:
    """Refuse a dtype that tensors on a device cannot have.

    :param owner: the caller, for the error
    :param dtype: of observations
    :param device: device of the tensors
    """
    try:
        th.zeros(1, dtype=numpy_dtype_to_torch(dtype), device=device)
    except ParameterError:
        hint = "Use a compressed buffer of sb3_extra_buffers.compressed, or another dtype."
        raise DeviceError(str(device), f"torch has no dtype for observations of {dtype} ({owner})", hint) from None
    except (RuntimeError, TypeError) as error:
        hint = "Use another dtype, or buffer_device='cpu'."
        raise DeviceError(str(device), f"it has no observations of {dtype} ({owner})", hint) from error


def as_array(values: NDArray[Any] | th.Tensor) -> NDArray[Any]:
    """A tensor of any device as an array on the host; arrays are returned as they are."""
    return values.detach().cpu().numpy() if isinstance(values, th.Tensor) else values

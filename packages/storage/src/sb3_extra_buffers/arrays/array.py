"""``CompressedArray``: indexes like ``numpy.ndarray``, stores every cell compressed."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import DTypeLike, NDArray

from sb3_extra_buffers.arrays.casting import as_shape, broadcast, fit, narrow, storable
from sb3_extra_buffers.arrays.indexing import CellNumbers, has_arrays, last_of_each, picks_whole_cells
from sb3_extra_buffers.codecs import CodecLike
from sb3_extra_buffers.errors import HeapStateError, ObservationError, ParameterError
from sb3_extra_buffers.frames.batch_memory import BLOCKS, BatchMemory
from sb3_extra_buffers.memory import Bytes, Indices
from sb3_extra_buffers.stores import (
    AUTO,
    DEFAULT_HEAP,
    MEMORY,
    DeferredStore,
    ObservationStore,
    Place,
    StoreRequest,
    build_stores,
    parse_request,
    resolve,
)

_BYTE = np.dtype(np.uint8)


def as_rows(values: NDArray[Any], count: int) -> Bytes:
    """Cells as bytes, a row for each."""
    rows = values.reshape(count, -1)
    return rows if rows.dtype is _BYTE else rows.view(_BYTE)


class CompressedArray:
    """An array of equal cells that are stored compressed.

    The leading axes number the cells; they are indexed as those of an ``ndarray``: by integers, slices, arrays of
    integers or booleans, ``Ellipsis`` and ``None``, for reading and for writing. An index may reach into the cells,
    which are then decoded as a whole. Reading always returns a new array. Cells that were never written are zero.

    :param shape: the leading axes, for instance ``(buffer_size, n_envs)``
    :param dtype: of the elements
    :param obs_shape: the shape of one cell
    :param dtypes: store as another dtype than ``dtype``, if every value can be restored from it: a dtype, or
        ``{"elem_type": dtype}``
    :param compression_method: a codec such as ``"zstd-3"`` or ``"rle-jit"``; ``"auto"`` chooses
    :param compression_kwargs: parameters of the codec
    :param decompression_kwargs: accepted for old scripts, without effect
    :param heap: name of the heap that holds the payloads
    :param heap_kwargs: parameters of the heap, such as ``capacity``
    :param threads: threads used to decode; ``None`` chooses automatically
    """

    #: Whether no other array stores in the same heap.
    _is_alone = False
    #: Whether the cells are next observations of the store.
    _is_next = False

    def __init__(
        self,
        shape: int | tuple[int, ...],
        dtype: DTypeLike = np.uint8,
        obs_shape: int | tuple[int, ...] = (),
        *,
        dtypes: Any = None,
        compression_method: CodecLike = AUTO,
        compression_kwargs: Mapping[str, Any] | None = None,
        decompression_kwargs: Mapping[str, Any] | None = None,
        heap: str = DEFAULT_HEAP,
        heap_kwargs: Mapping[str, Any] | None = None,
        threads: int | None = None,
    ) -> None:
        leading, item = as_shape("shape", shape), as_shape("obs_shape", obs_shape)
        if not leading or 0 in leading:
            raise ParameterError("CompressedArray", "shape", shape, "it must have at least one cell")
        asked = dtypes.get("elem_type") if isinstance(dtypes, Mapping) else dtypes
        stored, store = storable(dtype if asked is None else asked), None
        if math.prod(item):
            codec = parse_request(compression_method, compression_kwargs, decompression_kwargs)
            request = StoreRequest("CompressedArray", item, stored, math.prod(leading), codec=codec, prefer=MEMORY)
            (store,), _ = build_stores([request], Place(heap, dict(heap_kwargs or {}), threads))
        self._place(store, CellNumbers(leading), item, dtype, stored, BLOCKS)
        self._is_alone = True

    @classmethod
    def over(
        cls,
        store: ObservationStore | None,
        cells: Indices | CellNumbers,
        item: tuple[int, ...],
        dtype: DTypeLike,
        stored: DTypeLike | None = None,
        batches: int = BLOCKS,
    ) -> CompressedArray:
        """Make an array over a store that exists; ``None`` if cells of the shape ``item`` are empty.

        :param cells: the number of the cell at each place of the leading axes
        :param stored: dtype that elements are stored as, if it is not ``dtype``
        :param batches: number of batches in use at the same time
        """
        array = cls.__new__(cls)
        array._place(store, cells, item, dtype, dtype if stored is None else stored, batches)
        return array

    def _place(
        self, store: ObservationStore | None, cells: Any, item: tuple[int, ...], dtype: Any, stored: Any, batches: int
    ) -> None:
        self._store, self._item = store, item
        self._cells: Indices | CellNumbers = cells
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._stored: np.dtype[Any] = np.dtype(stored)
        self._batches = BatchMemory(batches)
        self.shape: tuple[int, ...] = cells.shape + item
        self.ndim = len(self.shape)
        # Rows that need no conversion, no check and no broadcasting have this shape; without elements there are none.
        self._row = self.shape[1:] if store is not None and self._dtype == self._stored else None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._dtype

    @property
    def stored_dtype(self) -> np.dtype[Any]:
        """The dtype that elements are stored as."""
        return self._stored

    @property
    def nbytes(self) -> int:
        """Bytes of an ``ndarray`` of this shape."""
        return self.size * self._dtype.itemsize

    @property
    def nbytes_stored(self) -> int:
        """Bytes of the payloads of all cells. Of two arrays over one store, the first counts them all."""
        return 0 if self._store is None or self._is_next else self._store.stored_nbytes()

    @property
    def nbytes_for_batches(self) -> int:
        """Bytes of memory that is kept for later reads."""
        return self._batches.nbytes

    @property
    def store(self) -> ObservationStore | None:
        """The store of the cells; ``None`` if a cell has no elements."""
        if type(self._store) is DeferredStore:
            self._store = resolve(self._store)
        return self._store

    @property
    def codec(self) -> str:
        """How the cells are stored and, for an automatic choice, why."""
        return "none (cells are empty)" if self._store is None else self._store.describe()

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        whole = key
        if type(key) is not ndarray or key.dtype.kind not in "iu":  # not a minibatch of a rollout
            whole = picks_whole_cells(key, self._cells.ndim, self.ndim)
            if whole is None:
                return self._get_inside(key)
        found = self._deliver(np.asarray(self._cells[whole]))
        return found if found.ndim else found[()]

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) is int and self.takes(value):
            # One step that needs no conversion: what buffers write most, so it takes the shortest way.
            cells = self._cells[key]
            self._write_rows(cells.reshape(-1), as_rows(value, cells.size))
            return
        whole = picks_whole_cells(key, self._cells.ndim, self.ndim)
        if whole is None:
            self._set_inside(key, value)
            return
        cells = np.asarray(self._cells[whole])
        values = broadcast(fit("CompressedArray", "value", value, self._dtype), cells.shape + self._item)
        if has_arrays(whole) and cells.size > 1:
            cells, values = last_of_each(cells, values.reshape(cells.size, *self._item))
        self._write(cells, values)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("CompressedArray: an array without a copy does not exist, the cells are compressed.")
        return self._read(np.asarray(self._cells)).astype(self._dtype if dtype is None else dtype, copy=False)

    def __repr__(self) -> str:
        return f"<CompressedArray {self.shape} of {self._dtype}, {self.codec}>"

    @property
    def is_plain(self) -> bool:
        """Whether steps of this shape and dtype are stored without conversion."""
        return self._row is not None

    def takes(self, value: Any) -> bool:
        """Whether a value is a step that can be stored without conversion or broadcasting."""
        return (
            isinstance(value, ndarray)
            and value.shape == self._row
            and value.dtype == self._dtype
            and value.flags.c_contiguous
        )

    def fit(self, owner: str, argument: str, value: Any) -> NDArray[Any]:
        """Convert a value as an assignment would, or raise the same error, for this owner. Nothing is stored."""
        values = fit(owner, argument, value, self._dtype)
        narrow(owner, argument, values, self._stored)
        return values

    def copy(self) -> CompressedArray:
        """An independent array with the same content, and with a copy of the heap."""
        return copy.deepcopy(self)

    def swapaxes(self, first: int, second: int) -> CompressedArray:
        """The same cells with two of the leading axes swapped. Nothing is copied."""
        axes = [axis + self.ndim if axis < 0 else axis for axis in (first, second)]
        if not all(0 <= axis < self._cells.ndim for axis in axes):
            allowed = f"cells stay whole: the axes must be among the first {self._cells.ndim}"
            raise ParameterError("CompressedArray", "swapaxes", (first, second), allowed)
        return self._like(self._cells.swapaxes(*axes), self._item)

    def reshape(self, *shape: Any) -> CompressedArray:
        """The same cells in another shape. Nothing is copied, so cells stay whole."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        wanted = np.empty(self.shape, np.void).reshape(wanted).shape if -1 in wanted else tuple(wanted)
        for axes in range(1, len(wanted) + 1):
            if math.prod(wanted[:axes]) == self._cells.size and math.prod(wanted[axes:]) == math.prod(self._item):
                return self._like(self._cells.reshape(wanted[:axes]), wanted[axes:])
        found, expected = f"{wanted}", f"a shape that keeps cells of {self._item} together, {self._cells.size} of them"
        hint = "numpy.asarray() makes an array that takes any shape."
        raise ObservationError("CompressedArray", "shape", found, expected, hint)

    def _like(self, cells: Indices | CellNumbers, item: tuple[int, ...]) -> CompressedArray:
        array = self.over(self._store, cells, item, self._dtype, self._stored, self._batches.blocks)
        array._is_next = self._is_next
        return array

    def clear(self) -> None:
        """Make every cell zero again. Memory may be kept for later writes."""
        if not self._is_alone:
            hint = "Use reset() of the buffer, or assign zeros."
            raise HeapStateError("CompressedArray", "clear", "other arrays share its heap", hint)
        if self._store is not None:
            self._store.clear()

    # Whole cells.

    def stored_rows(self, values: NDArray[Any]) -> Bytes:
        """Values as bytes in the stored dtype, a row for each cell; an error if that would change a value."""
        stored = np.ascontiguousarray(narrow("CompressedArray", "value", values, self._stored))
        return as_rows(stored, math.prod(values.shape[: values.ndim - len(self._item)]))

    def _deliver(self, cells: Indices) -> Any:
        """What an index returns. Subclasses may return another kind of array."""
        return self._read(cells)

    def _read(self, cells: Indices) -> NDArray[Any]:
        store = self.store
        if store is None or not cells.size:
            return np.zeros(cells.shape + self._item, self._dtype)
        values = self._batches.empty(cells.shape + self._item, self._stored)
        rows = as_rows(values, cells.size)
        store.read(cells.reshape(-1), None if self._is_next else rows, rows if self._is_next else None)
        return values.astype(self._dtype, copy=False)

    def _write(self, cells: Indices, values: NDArray[Any]) -> None:
        if self._store is not None and cells.size:
            self._write_rows(cells.reshape(-1), self.stored_rows(values))

    def _write_rows(self, cells: Indices, rows: Bytes) -> None:
        store = self.store
        assert store is not None
        store.write(cells, None if self._is_next else rows, rows if self._is_next else None)

    # Parts of cells, by way of all cells that are touched. Rare, so simple: numpy resolves the index.

    def _elements(self, key: Any) -> tuple[Indices, Indices, Indices]:
        """All cells that an index touches, and for each element that it picks: which of these, and the place in it."""
        inside = (1,) * len(self._item)
        cells = np.asarray(np.broadcast_to(self._cells.reshape(*self._cells.shape, *inside), self.shape)[key])
        places = np.broadcast_to(np.arange(math.prod(self._item)).reshape(self._item), self.shape)
        touched, which = np.unique(cells, return_inverse=True)
        return touched, which.reshape(cells.shape), np.asarray(places[key])

    def _get_inside(self, key: Any) -> Any:
        touched, which, places = self._elements(key)
        picked = self._read(touched).reshape(len(touched), math.prod(self._item))[which, places]
        return picked if picked.ndim else picked[()]

    def _set_inside(self, key: Any, value: Any) -> None:
        touched, which, places = self._elements(key)
        values = broadcast(fit("CompressedArray", "value", value, self._dtype), which.shape)
        content = self._read(touched)
        content.reshape(len(touched), math.prod(self._item))[which, places] = values
        self._write(touched, content)

"""What the interpreter does not notice: access out of bounds, misaligned access, races, false hints, assertions.

The interpreter reads and writes wherever it is told to, and runs programs one after the other. On a device the same
kernel would fault, or give another result every time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from triton.runtime import interpreter

_LOAD, _STORE, _ATOMIC = "load", "store", "atomic"
_NOBODY, _SEVERAL = -1, -2


class MemoryFault(AssertionError):  # noqa: N818
    """A kernel did what a device would not forgive."""


class Memory:
    """The bytes that kernels may touch, and which program has read and written each of them.

    :param tensors: whose storages these are
    """

    def __init__(self, tensors: tuple[torch.Tensor, ...]) -> None:
        storages = {
            storage.data_ptr(): storage.nbytes() for storage in (tensor.untyped_storage() for tensor in tensors)
        }
        self._begins = np.array(sorted(storages), np.uint64)
        self._sizes = np.array([storages[int(begin)] for begin in self._begins], np.uint64)
        self._firsts = np.concatenate([[0], np.cumsum(self._sizes.astype(np.int64))])
        self.forget()

    def forget(self) -> None:
        """Another launch begins: what comes after the one before is no race."""
        self._reader = np.full(self._firsts[-1], _NOBODY, np.int64)
        self._writer = np.full(self._firsts[-1], _NOBODY, np.int64)

    def locate(self, addresses: np.ndarray, size: int, what: str) -> np.ndarray:
        """The numbers of all bytes of these accesses."""
        if (addresses % np.uint64(size)).any():
            raise MemoryFault(f"misaligned {what} of {size} bytes")
        which = np.maximum(np.searchsorted(self._begins, addresses, side="right") - 1, 0)
        places = addresses - self._begins[which]
        # An address before the first storage wraps around, and is far behind it.
        if (addresses < self._begins[which]).any() or (places + np.uint64(size) > self._sizes[which]).any():
            raise MemoryFault(f"{what} of {size} bytes out of bounds")
        first = self._firsts[which] + places.astype(np.int64)
        return (first[:, np.newaxis] + np.arange(size)).reshape(-1)

    def touch(self, numbers: np.ndarray, program: int, what: str) -> None:
        """Note an access, unless another program has touched a byte and one of the two writes."""
        writer = self._writer[numbers]
        if ((writer != _NOBODY) & (writer != program)).any():
            raise MemoryFault(f"race: {what} of bytes that another program writes")
        reader = self._reader[numbers]
        if what == _LOAD:
            is_only = (reader == _NOBODY) | (reader == program)
            self._reader[numbers] = np.where(is_only, program, _SEVERAL)
            return
        if ((reader != _NOBODY) & (reader != program)).any():
            raise MemoryFault("race: store to bytes that another program reads")
        self._writer[numbers] = program


class Sanitizer:
    """Watches kernels: ``with Sanitizer(tensor, ...):`` before they are launched.

    What two programs touch, one of them to write, is a race; atomics are left out of that. What threads of one program
    do to each other is not seen: to the interpreter, a program is one thread.

    :param tensors: all that kernels may touch
    """

    def __init__(self, *tensors: torch.Tensor) -> None:
        self._memory = Memory(tensors)
        self._undo: list[tuple[Any, str, Any]] = []
        #: How many accesses were looked at, so that a test can tell that it has tested something.
        self.checked = 0

    def __enter__(self) -> Sanitizer:
        builder, watcher = interpreter.InterpreterBuilder, self

        def load(this: Any, pointers: Any, mask: Any, *rest: Any) -> Any:
            watcher._look(pointers, mask, _LOAD)
            return originals["create_masked_load"](this, pointers, mask, *rest)

        def store(this: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
            watcher._look(pointers, mask, _STORE)
            return originals["create_masked_store"](this, pointers, value, mask, *rest)

        def update(this: Any, operation: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
            watcher._look(pointers, mask, _ATOMIC)
            return originals["create_atomic_rmw"](this, operation, pointers, value, mask, *rest)

        def launch(this: Any, *grid: Any) -> Any:
            watcher._memory.forget()
            return originals["set_grid_dim"](this, *grid)

        replacements = {
            "create_masked_load": load,
            "create_masked_store": store,
            "create_atomic_rmw": update,
            "set_grid_dim": launch,
        }
        originals = {name: getattr(builder, name) for name in replacements}
        for name, function in replacements.items():
            self._replace(builder, name, function)
        self._replace(interpreter.TensorHandle, "set_attr", _checked_hint(interpreter.TensorHandle.set_attr))
        # Assertions of kernels are compiled only with this option, which the interpreter has switched off.
        self._replace(interpreter.interpreter_builder, "options", interpreter.InterpreterOptions(debug=True))
        return self

    def __exit__(self, *_: object) -> None:
        while self._undo:
            owner, name, original = self._undo.pop()
            setattr(owner, name, original)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _look(self, pointers: Any, mask: Any, what: str) -> None:
        addresses = np.asarray(pointers.data, np.uint64)
        if mask is not None:
            addresses = addresses[np.broadcast_to(np.asarray(mask.data, bool), addresses.shape)]
        addresses = addresses.reshape(-1)
        if not len(addresses):
            return
        self.checked += len(addresses)
        size = np.dtype(interpreter._get_np_dtype(pointers.get_element_ty())).itemsize
        numbers = self._memory.locate(addresses, size, what)
        if what != _ATOMIC:
            x, y, z = interpreter.interpreter_builder.grid_idx
            _, ny, nz = interpreter.interpreter_builder.grid_dim
            self._memory.touch(numbers, (x * ny + y) * nz + z, what)


def _checked_hint(original: Any) -> Any:
    """A number that is said to be a multiple of another one must be: wide loads and stores rely on it."""

    def set_attr(this: Any, name: str, values: Any) -> Any:
        if name == "tt.divisibility" and this.data.size == 1 and int(this.data.reshape(-1)[0]) % values[0]:
            raise MemoryFault(f"{int(this.data.reshape(-1)[0])} is not a multiple of {values[0]}, as the kernel says")
        return original(this, name, values)

    return set_attr

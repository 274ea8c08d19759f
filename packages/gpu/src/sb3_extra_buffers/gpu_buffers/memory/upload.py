"""``Uploader``: from the host to a device, without waiting for it where that is possible."""

from __future__ import annotations

from typing import Any

import torch as th

#: How many copies can be under way. Before the oldest of them is done, its memory is not used again.
_SLOTS = 32
#: Longer uploads go in pieces of this size, so that loading a buffer does not claim as much memory once more.
_MAX_NBYTES = 1 << 20
_MIN_NBYTES = 1 << 16


class Uploader:
    """Copies bytes to a device.

    A copy that does not wait needs memory that the system does not move, and that stays as it is until the copy is
    done. Making such memory for each copy takes longer than the copy, so a few pieces are used in turn.

    :param device: where bytes go
    """

    def __init__(self, device: th.device) -> None:
        self.device = device
        self._is_pinned = device.type == "cuda"
        self._slots: list[tuple[th.Tensor, Any]] = []
        self._next = 0

    def upload(self, data: Any, target: th.Tensor) -> None:
        """Copy what a buffer holds to a tensor of as many bytes.

        :param data: anything with bytes
        :param target: where to
        """
        view = memoryview(data)
        for begin in range(0, len(view), _MAX_NBYTES):
            piece = view[begin : begin + _MAX_NBYTES]
            # torch warns of memory that it must not write to, and this is only read.
            source = th.frombuffer(bytearray(piece) if piece.readonly else piece, dtype=th.uint8)
            self._copy(source, target[begin : begin + len(piece)])

    def _copy(self, source: th.Tensor, target: th.Tensor) -> None:
        if not self._is_pinned:
            target.copy_(source)
            return
        staging, event = self._slot(len(source))
        event.synchronize()
        staged = staging[: len(source)]
        staged.copy_(source)
        target.copy_(staged, non_blocking=True)
        event.record(th.cuda.current_stream(self.device))

    def _slot(self, nbytes: int) -> tuple[th.Tensor, Any]:
        index, self._next = self._next, (self._next + 1) % _SLOTS
        if index == len(self._slots):
            self._slots.append(self._make(nbytes))
        elif len(self._slots[index][0]) < nbytes:
            self._slots[index][1].synchronize()
            self._slots[index] = self._make(nbytes)
        return self._slots[index]

    @staticmethod
    def _make(nbytes: int) -> tuple[th.Tensor, Any]:
        size = max(_MIN_NBYTES, 1 << (nbytes - 1).bit_length())
        event: Any = th.cuda.Event  # has no types
        return th.empty(size, dtype=th.uint8, pin_memory=True), event()

    def __reduce__(self) -> tuple[Any, ...]:
        return Uploader, (self.device,)

"""``Status``: what kernels found, learnt without waiting for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch as th

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.memory import Indices

_DAMAGED = "its content does not make a cell"
#: How many launches may be under way before one is waited for.
_LAUNCHES = 8


class Status:
    """Numbers on the device that kernels raise when they meet a damaged payload, one for each launch.

    Whoever asked has gone on by then: nothing waits for a device while batches are made. The number is brought to the
    host beside the work and looked at before the launches that follow, so a damaged payload is an error a batch later.

    :param codec: whose payloads are decoded, for the error
    :param device: where
    """

    def __init__(self, codec: str, device: th.device) -> None:
        self._codec = codec
        self._is_awaited = device.type != "cuda"
        self._numbers = th.zeros(_LAUNCHES, dtype=th.int32, device=device)
        self._seen = th.zeros(_LAUNCHES, dtype=th.int32, pin_memory=not self._is_awaited)
        self._next = 0
        #: Launches that were not looked at: which number, when it is there, and what was read.
        self._pending: deque[tuple[int, Any, Indices]] = deque()

    @contextmanager
    def watching(self, lengths: Indices) -> Iterator[th.Tensor]:
        """The number for a launch.

        :param lengths: sizes of the payloads that it reads
        """
        self.check(under_way=_LAUNCHES - 1)
        slot, self._next = self._next, (self._next + 1) % _LAUNCHES
        number = self._numbers[slot : slot + 1]
        number.zero_()
        yield number
        self._seen[slot : slot + 1].copy_(number, non_blocking=not self._is_awaited)
        self._pending.append((slot, self._event(), lengths))
        if self._is_awaited:
            self.check()

    def check(self, *, under_way: int = 0) -> None:
        """Raise what the launches found that are done.

        :param under_way: how many of the others need not be waited for
        """
        while self._pending:
            slot, done, lengths = self._pending[0]
            if done is not None and len(self._pending) <= under_way and not done.query():
                return
            if done is not None:
                done.synchronize()
            self._pending.popleft()
            found = int(self._seen[slot])
            if found:
                raise PayloadError(self._codec, int(lengths[found - 1]), _DAMAGED, found - 1)

    def _event(self) -> Any:
        if self._is_awaited:
            return None
        make: Any = th.cuda.Event  # has no types
        event = make()
        event.record(th.cuda.current_stream(self._numbers.device))
        return event

"""``Settled``: a store that nobody uses while a worker reads it."""

from __future__ import annotations

from typing import Any

from sb3_extra_buffers.compressed.prefetch import Worker


class Settled:
    """A store, or frames, that can be used only while the worker is idle.

    It stands before the store instead of a lock inside of it: who does not prefetch has neither.

    :param inner: a :class:`Store` or :class:`Frames`
    :param worker: who else reads it
    """

    _WRITES = frozenset({"write", "write_both", "clear", "restore"})

    def __init__(self, inner: Any, worker: Worker) -> None:
        self._inner = inner
        self._worker = worker

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # copying asks for special methods before there is anything inside
        worker = self._worker
        worker.settle()
        if name in self._WRITES:
            worker.writes += 1
        return getattr(self._inner, name)

    def __getstate__(self) -> dict[str, Any]:
        self._worker.settle()
        return self.__dict__

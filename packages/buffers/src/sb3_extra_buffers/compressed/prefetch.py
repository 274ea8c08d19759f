"""``Worker``: reads the next batch while its buffer's owner trains on the one before."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import get_ident
from typing import Any, TypeVar

from sb3_extra_buffers.errors import ParameterError

Result = TypeVar("Result")

#: Not the name of the codecs' threads: those are known by it, and do not share their work with others.
_NAME = "prefetch-sb3-extra-buffers"
#: While one batch is decoded, one waits to be handed out, and the one before that is in somebody's variable.
BATCHES_AT_ONCE = 3


def check_prefetch(owner: str, prefetch: Any, obstacle: str) -> None:
    """Refuse what is no yes or no, and a yes where the next batch cannot be read ahead.

    :param owner: the buffer's class
    :param prefetch: what was asked for
    :param obstacle: why it cannot be done; empty if it can
    """
    if not isinstance(prefetch, bool):
        raise ParameterError(owner, "prefetch", prefetch, "it must be True or False")
    if prefetch and obstacle:
        raise ParameterError(owner, "prefetch", prefetch, f"it must be False: {obstacle}", "Leave prefetch out.")


class Worker:
    """One thread that does one thing at a time. It is started by the first, and ends with its owner.

    Stores have no locks. So whoever else wants to touch them waits first until the worker is idle: :meth:`settle`.
    The worker waits for nobody, hence nobody waits for ever. And what is written comes always after what was asked to
    be read before, whichever thread is faster.
    """

    def __init__(self) -> None:
        #: How often something was written that a job may have read before.
        self.writes = 0
        self._pool: ThreadPoolExecutor | None = None
        self._job: Future[Any] | None = None
        self._thread = 0
        _workers.add(self)

    def submit(self, work: Callable[..., Result], *args: Any) -> Future[Result]:
        """Begin something, after what was begun before. What comes of it is for :meth:`finish`.

        :param work: must not refer to the owner, which could not be released until it is done
        :param args: of the work
        """
        self.settle()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, _NAME)
        job = self._pool.submit(self._run, work, args)
        self._job = job
        return job

    def finish(self, job: Future[Result]) -> Result:
        """What came of a job, once it is done. What it raised is raised here.

        :param job: from :meth:`submit`
        """
        self.settle()
        return job.result()

    def settle(self) -> None:
        """Wait until nothing is under way. Who is called by the job itself goes on."""
        job = self._job
        if job is not None and get_ident() != self._thread:
            job.exception()  # waits, and leaves it to finish() to raise
            self._job = None  # its result belongs to those who wait for it

    def leave_thread(self) -> None:
        """Forget the thread, in a process that does not have it. The next job starts another one."""
        self._pool, self._thread = None, 0

    def _run(self, work: Callable[..., Result], args: tuple[Any, ...]) -> Result:
        self._thread = get_ident()
        return work(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        return Worker, ()  # no thread travels


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _settle_all() -> None:
    for worker in list(_workers):
        worker.settle()


def _leave_threads() -> None:
    for worker in list(_workers):
        worker.leave_thread()


# Threads do not survive a fork: a child would wait for ever for a batch that was under way, and read from a store in
# whose caches another thread was just writing.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_settle_all, after_in_child=_leave_threads)

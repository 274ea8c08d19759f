"""A small thread pool for codecs that let other threads run while they work."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

#: More threads than this would compete with the environments and with torch for the same cores.
MAX_AUTOMATIC_THREADS = 4

_NAME = "sb3-extra-buffers"
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def automatic_threads() -> int:
    """As many threads as this process may run on, within reason."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, MAX_AUTOMATIC_THREADS))


def run_split(work: Callable[[slice], None], count: int, threads: int) -> None:
    """Run ``work`` on contiguous slices of ``range(count)``, one per thread, the first on the calling thread.

    :param work: called once per slice; an exception in any of them is raised here, after all have ended
    :param count: how many items there are
    :param threads: into how many slices to cut them
    """
    if threading.current_thread().name.startswith(_NAME):
        threads = 1  # a worker that waited for workers could wait for ever
    threads = max(1, min(threads, count))
    if threads == 1:
        work(slice(0, count))
        return
    edges = [count * part // threads for part in range(threads + 1)]
    slices = [slice(low, high) for low, high in pairwise(edges)]
    pool = _get_pool(threads - 1)
    futures = [pool.submit(work, part) for part in slices[1:]]
    try:
        work(slices[0])
    finally:
        # Wait also if our own slice failed: the others still write into the caller's memory.
        errors = [future.exception() for future in futures]
    for error in errors:
        if error is not None:
            raise error


def _get_pool(workers: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # brings logging along, which most processes never need

    global _pool, _pool_size
    if _pool is None or _pool_size < workers:
        _pool, _pool_size = ThreadPoolExecutor(workers, thread_name_prefix=_NAME), workers
    return _pool


def _forget_pool() -> None:
    global _pool, _pool_size
    _pool, _pool_size = None, 0


# Threads do not survive a fork: a child that inherited the pool would wait for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)

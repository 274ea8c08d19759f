"""Batches of cells for every codec: by its own batch methods or a loop, on several threads where that is faster."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from sb3_extra_buffers.codecs.protocol import BatchCodec, Codec
from sb3_extra_buffers.errors import CellMismatchError, HeapStateError, ParameterError, PayloadError
from sb3_extra_buffers.memory import Buffer, Bytes, ByteSource, Indices, check_room, check_rows

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

#: More threads would compete with the environments and with torch for the same cores.
MAX_AUTOMATIC_THREADS = 4

#: What a caller may ask for is not limited; the rest then waits for a thread.
_MAX_THREADS = 64
_NAME = "sb3-extra-buffers"


def encode_batch(codec: Codec, rows: Bytes, out: Bytes) -> Indices:
    """Encode every row into ``out``, the payloads contiguous.

    :param codec: a bound codec
    :param rows: shape ``(n, codec.cell.nbytes)``, uint8
    :param out: at least ``n * codec.max_encoded_nbytes`` writable bytes
    :return: the length of each payload
    """
    check_rows(codec.spec.name, "rows", rows, None, codec.cell.nbytes)
    check_room(codec.spec.name, "out", out, len(rows) * codec.max_encoded_nbytes)
    if _has_batches(codec):
        return codec.encode_batch(rows, out)
    return encode_each(lambda row: memoryview(codec.encode(row)).cast("B"), rows, out)


def decode_batch(
    codec: Codec, source: ByteSource, starts: Indices, lengths: Indices, out: Bytes, *, threads: int | None = None
) -> None:
    """Decode many payloads straight into the rows of ``out``.

    :param codec: a bound codec
    :param source: a heap, or :class:`FlatBytes` around an array
    :param starts: positions of the payloads in ``source``; they may repeat and come in any order
    :param lengths: sizes of the payloads in bytes
    :param out: shape ``(n, codec.cell.nbytes)``, uint8, C-contiguous
    :param threads: number of threads; ``None`` uses more than one if the codec declares that a batch of this size gains
        from it (``min_nbytes_per_thread``)
    """
    name = codec.spec.name
    if not hasattr(source, "addresses"):
        found = f"an object of type {type(source).__name__}"
        raise CellMismatchError(name, "source", found, "a heap", "An array becomes a source by FlatBytes(array).")
    starts, lengths = _integers(name, "starts", starts), _integers(name, "lengths", lengths)
    if starts.ndim != 1 or starts.shape != lengths.shape:
        found = f"of shape {lengths.shape} for starts of shape {starts.shape}"
        raise CellMismatchError(name, "lengths", found, "two one-dimensional arrays of one length")
    if starts.size and starts.min() < 0:
        asked = f"decode payload {int((starts < 0).argmax())} of the batch"
        hint = "It was never written, or was evicted before it was located."
        raise HeapStateError(name, asked, "its cell has no payload (position -1)", hint)
    check_rows(name, "out", out, len(starts), codec.cell.nbytes, writable=True)
    decode = codec.decode_batch if _has_batches(codec) else partial(decode_each, codec.decode_into)

    def work(part: slice) -> None:
        try:
            decode(source, starts[part], lengths[part], out[part])
        except PayloadError as error:
            if error.index is not None:
                error.index += part.start
            raise

    run_split(work, len(starts), _thread_count(codec, out.nbytes, threads))


def _has_batches(codec: Codec) -> TypeGuard[BatchCodec]:
    # Not isinstance(): this runs for every batch, and a runtime-checkable protocol looks at every member.
    return hasattr(codec, "encode_batch") and hasattr(codec, "decode_batch")


def _integers(owner: str, argument: str, values: Indices) -> Indices:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise CellMismatchError(owner, argument, f"an array of {array.dtype}", "an array of integers")
    return array.astype(np.int64, copy=False)


def _thread_count(codec: Any, nbytes: int, threads: int | None) -> int:
    if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
        raise ParameterError(codec.spec.name, "threads", threads, "it must be None or an integer of at least 1")
    if threads is not None:
        return threads
    share = getattr(codec, "min_nbytes_per_thread", None)
    return 1 if share is None else min(automatic_threads(), nbytes // share)


def encode_each(encode: Callable[[Any], Buffer], cells: Iterable[Buffer], out: Bytes) -> Indices:
    """Encode cells one by one, the payloads contiguous in ``out``, and return their lengths."""
    lengths, end, target = [], 0, memoryview(out)
    for cell in cells:
        payload = encode(cell)
        start, end = end, end + len(payload)
        target[start:end] = payload
        lengths.append(len(payload))
    return np.array(lengths, np.int64)


def decode_each(
    decode: Callable[[Any, Any], None], source: ByteSource, starts: Indices, lengths: Indices, cells: Iterable[Buffer]
) -> None:
    """Decode payloads one by one into memory for cells. An error says which of them it is about."""
    index, view = 0, source.view
    try:
        for start, length, cell in zip(starts.tolist(), lengths.tolist(), cells):
            decode(view(start, length), cell)
            index += 1
    except PayloadError as error:
        error.index = index
        raise


def automatic_threads() -> int:
    """The number of cores that this process may use, at most ``MAX_AUTOMATIC_THREADS``."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, MAX_AUTOMATIC_THREADS))


def run_split(work: Callable[[slice], None], count: int, threads: int) -> None:
    """Run ``work`` on contiguous slices of ``range(count)``, one per thread, the first on the calling thread.

    :param work: called once per slice; an exception in any of them is raised here, after all have ended
    :param count: number of items
    :param threads: number of slices
    """
    if threading.current_thread().name.startswith(_NAME):
        threads = 1  # a worker that waits for workers could wait forever
    threads = max(1, min(threads, count))
    if threads == 1:
        work(slice(0, count))
        return
    edges = [count * part // threads for part in range(threads + 1)]
    slices = [slice(low, high) for low, high in pairwise(edges)]
    futures = [_pool().submit(work, part) for part in slices[1:]]
    try:
        work(slices[0])
    finally:
        # Wait also if our own slice failed: the others still write into the caller's memory.
        errors = [future.exception() for future in futures]
    for error in errors:
        if error is not None:
            raise error


@cache
def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # brings logging along, which most processes never need

    # It starts a thread only if all that it has are busy.
    return ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix=_NAME)


# Threads do not survive a fork: a child that inherited the pool would wait forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)

"""What it costs to keep observations, measured in a process that does nothing else. There is one per codec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from benchmarks.resident import resident_nbytes
from sb3_extra_buffers import codecs, heaps
from sb3_extra_buffers.views import Bytes, Indices

_ENVIRONMENTS = 8  # observations arrive in rows of this many, as from the eight environments usual for Atari
_SAMPLE = 256


@dataclass(frozen=True)
class Cost:
    """What keeping all observations in one way took.

    :param label: the codec as people type it
    :param resident: growth of the process's memory in bytes, libraries not counted
    :param payload: bytes of all payloads
    :param index: bytes that say where they are
    :param encode_seconds: to store all observations
    :param decode_seconds: to read them all back
    """

    label: str
    resident: int
    payload: int
    index: int
    encode_seconds: float
    decode_seconds: float


class WrongBytesError(AssertionError):
    """What was read back is not what was stored."""


def cost_of_array(path: str) -> Cost:
    """Keep the observations in one numpy array, as Stable-Baselines3 does.

    :param path: an ``.npy`` file, one observation per row
    """
    count, nbytes = _open(path).shape
    before = resident_nbytes()
    array = np.empty((count, nbytes), np.uint8)

    def store(cells: Indices, rows: Bytes) -> None:
        array[cells] = rows

    def read(cells: Indices, out: Bytes) -> None:
        np.take(array, cells, axis=0, out=out, mode="clip")  # the default mode would write to a copy of ``out`` first

    encode_seconds = _store_all(path, store)
    resident = resident_nbytes() - before
    return Cost("numpy array", resident, array.nbytes, 0, encode_seconds, _read_all(path, read))


def cost_of_codec(path: str, text: str) -> Cost:
    """Keep the observations in a ``memory`` heap and check that each comes back bit by bit.

    :param path: an ``.npy`` file, one observation per row
    :param text: the codec, such as ``"zstd/3"``
    """
    count, nbytes = _open(path).shape
    codec = codecs.bind(text, codecs.CellSpec(np.uint8, nbytes))
    # Libraries and their contexts take the same memory for a million observations as for one. Used once before, they
    # do not count.
    codec.decode_into(codec.encode(np.zeros(nbytes, np.uint8)), np.empty(nbytes, np.uint8))
    before = resident_nbytes()
    heap = heaps.create("memory", count)
    index = heap.nbytes - heap.capacity  # it has its final size from the start

    def store(cells: Indices, rows: Bytes) -> None:
        room = heap.reserve(cells, len(cells) * codec.max_encoded_nbytes)
        heap.commit(codecs.encode_batch(codec, rows, room))

    def read(cells: Indices, out: Bytes) -> None:
        codecs.decode_batch(codec, heap, *heap.locate(cells), out)

    encode_seconds = _store_all(path, store)
    resident = resident_nbytes() - before
    return Cost(str(codec.spec), resident, heap.live, index, encode_seconds, _read_all(path, read))


def _open(path: str) -> Bytes:
    # Mapped, so that the observations themselves are not part of the memory that is measured.
    return np.asarray(np.load(path, mmap_mode="r"))


def _store_all(path: str, store: Callable[[Indices, Bytes], None]) -> float:
    observations, seconds = _open(path), 0.0
    for first in range(0, len(observations), _ENVIRONMENTS):
        rows = observations[first : first + _ENVIRONMENTS].copy()  # what reading the file takes is nobody's cost
        cells = np.arange(first, first + len(rows))
        start = perf_counter()
        store(cells, rows)
        seconds += perf_counter() - start
    return seconds


def _read_all(path: str, read: Callable[[Indices, Bytes], None]) -> float:
    observations, seconds = _open(path), 0.0
    order = np.random.default_rng(0).permutation(len(observations))
    buffer = np.empty((_SAMPLE, observations.shape[1]), np.uint8)
    for first in range(0, len(order), _SAMPLE):
        cells = order[first : first + _SAMPLE]
        out = buffer[: len(cells)]
        start = perf_counter()
        read(cells, out)
        seconds += perf_counter() - start
        wrong = (out != observations[cells]).any(axis=1)
        if wrong.any():
            raise WrongBytesError(f"observation {cells[wrong.argmax()]} came back with other bytes than were stored")
    return seconds

"""``ReadAhead``: the observations of a batch that will be asked for, read by a worker."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sb3_extra_buffers.compressed.prefetch import Worker


class Ready:
    """Stands in for an array when Stable-Baselines3 asks it for a batch that is there. All else is asked of the array.

    :param array: a :class:`CompressedArray`
    :param indices: which rows make the batch
    :param rows: the batch
    """

    def __init__(self, array: Any, indices: NDArray[Any], rows: NDArray[Any]) -> None:
        self._array = array
        self._indices = indices
        self._rows = rows

    def __getitem__(self, indices: Any) -> Any:
        return self._rows if indices is self._indices else self._array[indices]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._array, name)


class ReadAhead:
    """A batch that is being read.

    :param worker: who reads it
    :param observations: an array, or arrays by key
    :param indices: which rows
    """

    def __init__(self, worker: Worker, observations: Any, indices: NDArray[Any]) -> None:
        self._worker = worker
        self._source = observations
        self._writes = worker.writes
        self._job = worker.submit(read, observations, indices)

    def take(self, observations: Any) -> Any:
        """What was read; ``None`` if the arrays are others by now, or something was written to them.

        :param observations: what the batch shall be read from
        """
        if observations is not self._source or self._worker.writes != self._writes:
            return None
        return self._worker.finish(self._job)


def read(observations: Any, indices: NDArray[Any]) -> Any:
    """The rows of an array, or of arrays by key.

    :param observations: an array, or arrays by key
    :param indices: which rows
    """
    if isinstance(observations, dict):
        return {key: array[indices] for key, array in observations.items()}
    return observations[indices]


def ready(observations: Any, indices: NDArray[Any], rows: Any) -> Any:
    """What stands in for an array, or for arrays by key, once a batch is read.

    :param observations: an array, or arrays by key
    :param indices: which rows make the batch
    :param rows: what :func:`read` returned for them
    """
    if isinstance(observations, dict):
        return {key: Ready(array, indices, rows[key]) for key, array in observations.items()}
    return Ready(observations, indices, rows)

"""``ReadAhead``: the observations of a batch that will be asked for, read by a worker."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from sb3_extra_buffers.compressed.prefetch import Worker


class Ready:
    """Stands in for an array when Stable-Baselines3 asks it for the one batch that was read.

    :param rows: the batch
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self._rows = rows

    def __getitem__(self, indices: Any) -> NDArray[Any]:
        return self._rows


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
        self._job = worker.submit(_read, observations, indices)

    def take(self, observations: Any) -> Any:
        """What stands in for the arrays; ``None`` if they are others by now, or something was written to them.

        :param observations: what the batch shall be read from
        """
        if observations is not self._source or self._worker.writes != self._writes:
            return None
        return self._worker.finish(self._job)


def _read(observations: Any, indices: NDArray[Any]) -> Any:
    if isinstance(observations, dict):
        return {key: Ready(array[indices]) for key, array in observations.items()}
    return Ready(observations[indices])

"""The contract of a data set: transitions by row number, with the ends of episodes known in advance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.errors import ExtraBuffersError, FileContentError, FileDamagedError, FileReadError

#: Key of the only part of an observation that has no keys.
NO_KEY = ""
#: Observations by key. An observation without keys is one part under ``NO_KEY``.
Parts = dict[str, NDArray[Any]]
#: Approximate size of the observations that are decoded at a time.
_BLOCK_NBYTES = 1 << 23
_MAX_BLOCK_ROWS = 4096


@dataclass(frozen=True)
class Block:
    """Consecutive transitions.

    :param observations: by key; an observation without keys is under the empty string
    :param next_observations: the same for the next observations
    :param actions: shape ``(n, ...)``
    :param rewards: shape ``(n,)``
    :param terminated: whether an episode was terminated with the transition
    :param truncated: whether an episode was truncated with the transition
    """

    observations: Parts
    next_observations: Parts
    actions: NDArray[Any]
    rewards: NDArray[Any]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rewards)


@dataclass(frozen=True)
class Episodes:
    """All episodes of a data set, in order: their rows, and how they ended.

    An episode that ended in neither way is open: it was still being played when the data were saved.

    :param starts: first row of each episode
    :param stops: end of its rows, exclusive
    :param terminated: whether it was terminated
    :param truncated: whether it was truncated
    """

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of transitions of each episode."""
        return self.stops - self.starts

    def flags(self, start: int, stop: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether each of these rows terminated or truncated its episode.

        :param start: first row
        :param stop: end of the rows, exclusive
        """
        flags = np.zeros(stop - start, np.bool_), np.zeros(stop - start, np.bool_)
        first, last = np.searchsorted(self.stops, [start + 1, stop + 1])
        ends = self.stops[first:last] - 1 - start
        for flag, of in zip(flags, (self.terminated, self.truncated)):
            flag[ends] = of[first:last]
        return flags


#: Returns consecutive rows, all of which belong to episodes. Calls with increasing rows are the fastest.
Reader = Callable[[int, int], Block]


class Dataset(ABC):
    """A data set: what :func:`open_dataset` returns, and what the formats implement.

    :param source: the path or id, for messages
    """

    #: Whether actions are in the range of the environment. Replay buffers of SAC, TD3 and DDPG hold them scaled to the
    #: range from -1 to 1.
    in_environment_units = True
    episodes: Episodes
    #: The spaces of Gymnasium that the source declares; ``None`` if it declares none.
    observation_space: Any = None
    action_space: Any = None

    def __init__(self, source: str) -> None:
        self.source = source

    def __len__(self) -> int:
        """Number of transitions."""
        return int(self.episodes.lengths.sum())

    @abstractmethod
    def reader(self) -> Reader:
        """Return a function that reads rows. Each has its own position in the file, and its own decoded rows."""

    @abstractmethod
    def close(self) -> None:
        """Close the files."""

    def __enter__(self) -> Dataset:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.source}: {len(self):,} transitions in {len(self.episodes):,} episodes>"

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Iterate over all transitions in blocks of bounded size. No block has rows of two episodes that are apart.

        :param rows: largest number of rows; ``None``: some megabytes
        """
        if not len(self):
            return
        read = self.reader()
        size = rows or rows_per_block(read(int(self.episodes.starts[0]), int(self.episodes.starts[0]) + 1))
        for start, stop in merged(self.episodes.starts, self.episodes.stops):
            for first in range(start, stop, size):
                yield read(first, min(first + size, stop))


def rows_per_block(block: Block, lanes: int = 1) -> int:
    """Number of rows whose observations take some megabytes.

    :param block: some rows
    :param lanes: number of blocks that are held at a time
    """
    nbytes = sum(part.nbytes for part in block.observations.values()) // len(block)
    return max(1, min(_MAX_BLOCK_ROWS, _BLOCK_NBYTES // max(1, nbytes * lanes)))


def merged(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Join ranges of rows that are adjacent.

    :param starts: first row of each range
    :param stops: end of each range, exclusive
    """
    if len(starts):
        breaks = np.flatnonzero(starts[1:] != stops[:-1])
        yield from zip(starts[np.append(0, breaks + 1)].tolist(), stops[np.append(breaks, len(stops) - 1)].tolist())


#: Errors of numpy, h5py, pyarrow, zipfile and Pillow about the content of a file.
_DAMAGE = (ArithmeticError, AttributeError, EOFError, LookupError, RuntimeError, TypeError, ValueError)


@contextmanager
def reading(source: str, what: str = "") -> Iterator[None]:
    """Raise errors of libraries as errors of this project.

    :param source: path or id
    :param what: what was expected, if the file may be of another kind; empty if it was opened before
    """
    import zlib
    from pickle import UnpicklingError
    from zipfile import BadZipFile

    try:
        yield
    except (ExtraBuffersError, MemoryError):
        raise
    except (*_DAMAGE, OSError, zlib.error, BadZipFile, UnpicklingError) as error:
        problem = " ".join(str(error).split())[:300] or type(error).__name__
        if isinstance(error, PermissionError):
            raise FileReadError(source, problem) from error
        if what:
            hint = "It is damaged, incomplete, or of another format."
            raise FileContentError(source, what, f"what cannot be read ({problem})", hint) from error
        raise FileDamagedError(source, (problem,)) from error

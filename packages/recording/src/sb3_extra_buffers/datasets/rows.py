"""Rows of an export: blocks with the numbers of episodes and steps. A next observation is not stored twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.datasets.protocol import Block, Dataset


class Rows(NamedTuple):
    """Rows to write.

    :param block: the transitions
    :param episodes: number of the episode of each
    :param steps: number of the step in its episode
    :param own: whether the next observation is not the observation of the following row of the same episode
    """

    block: Block
    episodes: NDArray[np.int64]
    steps: NDArray[np.int64]
    own: NDArray[np.bool_]


def export_rows(dataset: Dataset) -> Iterator[Rows]:
    """Iterate over all rows of a data set.

    :param dataset: the data set
    """
    ends = np.cumsum(dataset.episodes.lengths)
    start = 0
    for block, following in _with_following(dataset.blocks()):
        positions = np.arange(start, start + len(block))
        episodes = np.searchsorted(ends, positions, "right")
        steps = positions - (ends - dataset.episodes.lengths)[episodes]
        is_end = positions + 1 == ends[episodes]
        yield Rows(block, episodes.astype(np.int64), steps, is_end | ~_is_shared(block, following))
        start += len(block)


def _with_following(blocks: Iterator[Block]) -> Iterator[tuple[Block, Block]]:
    """Iterate over blocks, each with the one after it; the last with itself."""
    before = None
    for block in blocks:
        if before is not None:
            yield before, block
        before = block
    if before is not None:
        yield before, before


def _is_shared(block: Block, following: Block) -> NDArray[np.bool_]:
    """Whether each next observation has the same bytes as the observation of the row after it."""
    shared = np.ones(len(block), np.bool_)
    for key, part in block.observations.items():
        after = np.concatenate([part[1:], following.observations[key][:1]])
        sides = (np.ascontiguousarray(one).reshape(len(block), -1) for one in (after, block.next_observations[key]))
        left, right = (one.view(np.uint8) for one in sides)
        shared &= (left == right).all(axis=1)
    return shared

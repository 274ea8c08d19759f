"""Chunks taken apart, many at once: where every byte of every patch goes. The counterpart of core's ``Parsed``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.frames.packing import LEAP, PADDING, count_dtype


class Patches(NamedTuple):
    """Patches, frame by frame: those of the first frames of all chunks, then those of the second ones, and so on.

    :param places: for each byte, its place among all frames, one per chunk
    :param values: the bytes
    :param ends: where the bytes of each frame end
    """

    places: torch.Tensor
    values: torch.Tensor
    ends: list[int]


def parse(chunks: Sequence[torch.Tensor], sizes: Sequence[int], upto: Sequence[int], frame_nbytes: int) -> Patches:
    """Take chunks apart.

    :param chunks: the bytes of each chunk
    :param sizes: how many frames each of them has
    :param upto: how many of these are wanted, from the first
    :param frame_nbytes: size of a frame
    """
    device, width, most = chunks[0].device, count_dtype(frame_nbytes).itemsize, max(sizes)
    lengths = [len(chunk) for chunk in chunks]
    _refuse([size < 1 or size < wanted for size, wanted in zip(sizes, upto)], lengths)
    _refuse([length < size * width + PADDING for length, size in zip(lengths, sizes)], lengths)
    data = torch.cat(list(chunks))
    length, size, wanted = torch.tensor([lengths, list(sizes), list(upto)], device=device)
    start = torch.cumsum(length, 0) - length
    frame = torch.arange(most, device=device)
    counts = _counts(data, start[:, None] + frame * width, frame < size[:, None], width)
    steps_begin = start + size * width
    # Behind the steps of all frames, also of those not wanted.
    content = steps_begin + 2 * counts.sum(1)
    _refuse((content + PADDING > start + length).tolist(), lengths)
    counts[frame >= wanted[:, None]] = 0
    # The steps, chunk by chunk: how far each goes, counted from the beginning of its patch, and what it puts.
    own = counts.sum(1)
    step = _spread(steps_begin, own, 2)
    skip, put = data[step].to(torch.int64), data[step + 1].to(torch.int64)
    way, through = _sums(torch.where(put == 0, skip * LEAP, skip + put)), _sums(put)
    patch = counts.view(-1)
    first = torch.cumsum(patch, 0) - patch
    end = way[1:] - torch.repeat_interleave(way[first], patch)
    chunk_of = torch.repeat_interleave(torch.arange(len(chunks), device=device), own)
    chunk_first = torch.cumsum(own, 0) - own
    source = through[:-1] + (content - through[chunk_first])[chunk_of]
    bad = content + through[chunk_first + own] - through[chunk_first] + PADDING > start + length
    bad[chunk_of[end > frame_nbytes]] = True
    _refuse(bad.tolist(), lengths)
    # The same frame by frame: steps are few, so these are put in order and not the bytes.
    order = _spread(first.view_as(counts).T.reshape(-1), counts.T.reshape(-1))
    put_bytes = through[first + patch] - through[first]
    places = _spread((chunk_of * frame_nbytes + end - put)[order], put[order])
    values = data[_spread(source[order], put[order])]
    ends = torch.cumsum(put_bytes.view_as(counts).sum(0), 0)
    return Patches(places, values, ends.tolist())


def _counts(data: torch.Tensor, places: torch.Tensor, is_there: torch.Tensor, width: int) -> torch.Tensor:
    """How many steps patches have; 0 where there is none. Byte by byte: a chunk may begin anywhere in the data."""
    places = torch.where(is_there, places, 0)
    counts = torch.zeros(places.shape, dtype=torch.int64, device=data.device)
    for byte in range(width):
        counts += data[places + byte].to(torch.int64) << 8 * byte
    return torch.where(is_there, counts, 0)


def _sums(numbers: torch.Tensor) -> torch.Tensor:
    """Their sums, from none of them to all."""
    sums = torch.zeros(len(numbers) + 1, dtype=torch.int64, device=numbers.device)
    torch.cumsum(numbers, 0, out=sums[1:])
    return sums


def _spread(begins: torch.Tensor, sizes: torch.Tensor, step: int = 1) -> torch.Tensor:
    """All numbers of ranges that begin here and have these sizes, range by range."""
    before = torch.cumsum(sizes, 0) - sizes
    ranges = torch.repeat_interleave(begins - before * step, sizes)
    return ranges + torch.arange(len(ranges), device=begins.device) * step


def _refuse(bad: list[bool], lengths: list[int]) -> None:
    if True in bad:
        which = bad.index(True)
        problem = "its patches reach beyond their frame, or beyond its end"
        raise PayloadError("frames", lengths[which], problem, which)

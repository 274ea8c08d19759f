"""Chunks of frames in plain torch, all chunks in parallel: the specification of ``frame_decode``, and the fallback."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.frames.packing import LEAP, PADDING, count_dtype


class Needs(NamedTuple):
    """The frames that a batch needs, ordered by chunk.

    :param begin: ``int32``, index of the first need of each chunk, and the total number of needs
    :param frame: ``int32``, for each need the index of the frame in its chunk; ascending within a chunk, may repeat
    :param target: ``int64``, for each need the output offset of the frame's first byte
    """

    begin: torch.Tensor
    frame: torch.Tensor
    target: torch.Tensor


def decode(
    chunks: Sequence[torch.Tensor],
    sizes: Sequence[int],
    bases: Sequence[torch.Tensor],
    needs: Needs,
    out: torch.Tensor,
    *,
    frame_nbytes: int,
    group: int,
    stride: int,
) -> None:
    """Decode chunks and copy the needed frames to their targets.

    Byte ``p`` of a frame goes to ``target + p // group * stride + p % group``.

    :param chunks: ``uint8``, one tensor per chunk
    :param sizes: frames of each chunk
    :param bases: reference frame of each chunk, which its first patch changes
    :param needs: the needed frames and their targets; these tensors are on the host
    :param out: ``uint8``, contiguous
    :param frame_nbytes: size of a frame
    :param group: bytes of a frame that are contiguous in the output
    :param stride: distance between groups
    :raise PayloadError: for a damaged chunk
    """
    if not len(needs.frame):
        return
    chunk_of = torch.repeat_interleave(torch.arange(len(chunks)), needs.begin.diff().to(torch.int64))
    upto = torch.zeros(len(chunks), dtype=torch.int64)
    upto.scatter_reduce_(0, chunk_of, needs.frame.to(torch.int64) + 1, "amax")
    patches = parse(chunks, sizes, upto.tolist(), frame_nbytes)
    frames = torch.stack(list(bases))
    pixels = frames.view(-1)
    # Ordered by frame number, across all chunks.
    order = torch.argsort(needs.frame, stable=True)
    edges = torch.cumsum(torch.bincount(needs.frame), 0).tolist()
    targets = _Targets(needs.target[order], chunk_of[order], out, frame_nbytes, group, stride)
    patched = given = 0
    for patch_end, edge in zip(patches.ends, edges):
        pixels[patches.places[patched:patch_end]] = patches.values[patched:patch_end]
        targets.fill(slice(given, edge), frames)
        patched, given = patch_end, edge


class _Targets:
    """Output positions of the needed frames.

    :param targets: offset of the first byte of each need, on the host
    :param chunks: chunk of each need, on the host
    :param out: the output
    :param frame_nbytes: size of a frame
    :param group: bytes of a frame that are contiguous in the output
    :param stride: distance between groups
    """

    def __init__(
        self, targets: torch.Tensor, chunks: torch.Tensor, out: torch.Tensor, frame_nbytes: int, group: int, stride: int
    ) -> None:
        self._chunks = chunks.to(out.device)
        if group >= frame_nbytes:
            group = stride = frame_nbytes
        row_nbytes = frame_nbytes // group * stride
        row, start = targets // row_nbytes, targets % row_nbytes
        # If the output consists of whole observations, one index per frame is enough instead of one per byte.
        self._is_grid = not (
            len(out) % row_nbytes
            or stride % group
            or frame_nbytes % group
            or (start % group).any()
            or (start >= stride).any()
        )
        if self._is_grid:
            self._out = out.view(-1, frame_nbytes // group, stride // group, group)
            self._row, self._column = row.to(out.device), (start // group).to(out.device)
        else:
            byte = torch.arange(frame_nbytes)
            self._out = out
            self._row, self._column = targets.to(out.device), (byte // group * stride + byte % group).to(out.device)

    def fill(self, which: slice, frames: torch.Tensor) -> None:
        """Copy frames to their targets.

        :param which: range of needs
        :param frames: the current frame of each chunk
        """
        needed = frames[self._chunks[which]]
        if self._is_grid:
            _, pixels, _, group = self._out.shape
            self._out[self._row[which], :, self._column[which]] = needed.view(-1, pixels, group)
        else:
            self._out[self._row[which, None] + self._column] = needed


class Patches(NamedTuple):
    """The patched bytes of many chunks, ordered by frame number: the first frames of all chunks, then the second ones.

    :param places: for each byte, its index in the array of current frames, one per chunk
    :param values: the bytes
    :param ends: index of the last byte of each frame number, plus one
    """

    places: torch.Tensor
    values: torch.Tensor
    ends: list[int]


def parse(chunks: Sequence[torch.Tensor], sizes: Sequence[int], upto: Sequence[int], frame_nbytes: int) -> Patches:
    """Parse chunks into the bytes that their patches change.

    :param chunks: the bytes of each chunk
    :param sizes: frames of each chunk
    :param upto: number of frames to parse, from the first
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
    # After the steps of all frames, including those not wanted.
    content = steps_begin + 2 * counts.sum(1)
    _refuse((content + PADDING > start + length).tolist(), lengths)
    counts[frame >= wanted[:, None]] = 0
    # The steps of each chunk: the end of each, counted from the beginning of its patch, and the bytes it puts.
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
    # The same ordered by frame. Steps are few, so steps are sorted and not bytes.
    order = _spread(first.view_as(counts).T.reshape(-1), counts.T.reshape(-1))
    put_bytes = through[first + patch] - through[first]
    places = _spread((chunk_of * frame_nbytes + end - put)[order], put[order])
    values = data[_spread(source[order], put[order])]
    ends = torch.cumsum(put_bytes.view_as(counts).sum(0), 0)
    return Patches(places, values, ends.tolist())


def _counts(data: torch.Tensor, places: torch.Tensor, is_there: torch.Tensor, width: int) -> torch.Tensor:
    """Steps of each patch; 0 where there is no patch. Read byte by byte: chunks may begin at any offset."""
    places = torch.where(is_there, places, 0)
    counts = torch.zeros(places.shape, dtype=torch.int64, device=data.device)
    for byte in range(width):
        counts += data[places + byte].to(torch.int64) << 8 * byte
    return torch.where(is_there, counts, 0)


def _sums(numbers: torch.Tensor) -> torch.Tensor:
    """Cumulative sums, beginning with 0."""
    sums = torch.zeros(len(numbers) + 1, dtype=torch.int64, device=numbers.device)
    torch.cumsum(numbers, 0, out=sums[1:])
    return sums


def _spread(begins: torch.Tensor, sizes: torch.Tensor, step: int = 1) -> torch.Tensor:
    """Concatenated ranges with these begins and sizes."""
    before = torch.cumsum(sizes, 0) - sizes
    ranges = torch.repeat_interleave(begins - before * step, sizes)
    return ranges + torch.arange(len(ranges), device=begins.device) * step


def _refuse(bad: list[bool], lengths: list[int]) -> None:
    if True in bad:
        which = bad.index(True)
        problem = "its patches reach beyond their frame, or beyond its end"
        raise PayloadError("frames", lengths[which], problem, which)

"""Chunks of frames into the frames that a batch needs, in plain torch: all chunks side by side, frame by frame."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from sb3_extra_buffers.gpu_buffers.kernels.frame_decode.needs import Needs
from sb3_extra_buffers.gpu_buffers.kernels.frame_decode.parsed import parse


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
    """Decode chunks and write the frames that are needed to their places.

    Byte ``p`` of a frame goes to ``target + p // group * stride + p % group``.

    :param chunks: ``uint8``, a slice for each
    :param sizes: frames of each chunk
    :param bases: the frame that the first patch of each chunk is made on
    :param needs: which frames are needed, and where; these tensors are on the host
    :param out: ``uint8``, contiguous
    :param frame_nbytes: size of a frame
    :param group: bytes of a frame that stay together
    :param stride: from group to group
    """
    if not len(needs.frame):
        return
    chunk_of = torch.repeat_interleave(torch.arange(len(chunks)), needs.begin.diff().to(torch.int64))
    upto = torch.zeros(len(chunks), dtype=torch.int64)
    upto.scatter_reduce_(0, chunk_of, needs.frame.to(torch.int64) + 1, "amax")
    patches = parse(chunks, sizes, upto.tolist(), frame_nbytes)
    frames = torch.stack(list(bases))
    pixels = frames.view(-1)
    # In the order of frames, whatever chunk they are of.
    order = torch.argsort(needs.frame, stable=True)
    edges = torch.cumsum(torch.bincount(needs.frame), 0).tolist()
    places = _Places(needs.target[order], chunk_of[order], out, frame_nbytes, group, stride)
    patched = given = 0
    for patch_end, edge in zip(patches.ends, edges):
        pixels[patches.places[patched:patch_end]] = patches.values[patched:patch_end]
        places.fill(slice(given, edge), frames)
        patched, given = patch_end, edge


class _Places:
    """Where frames go.

    :param targets: of their first bytes, on the host
    :param chunks: which chunk each is of, on the host
    :param out: what they are written to
    :param frame_nbytes: size of a frame
    :param group: bytes of it that stay together
    :param stride: from group to group
    """

    def __init__(
        self, targets: torch.Tensor, chunks: torch.Tensor, out: torch.Tensor, frame_nbytes: int, group: int, stride: int
    ) -> None:
        self._chunks = chunks.to(out.device)
        if group >= frame_nbytes:
            group = stride = frame_nbytes
        row_nbytes = frame_nbytes // group * stride
        row, start = targets // row_nbytes, targets % row_nbytes
        # Whole observations, frame beside frame: an index for each frame will do instead of one for each byte.
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
        """Write frames to where they go.

        :param which: of all needs
        :param frames: one for each chunk
        """
        needed = frames[self._chunks[which]]
        if self._is_grid:
            _, pixels, _, group = self._out.shape
            self._out[self._row[which], :, self._column[which]] = needed.view(-1, pixels, group)
        else:
            self._out[self._row[which, None] + self._column] = needed

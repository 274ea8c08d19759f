"""The contract of everything that was recorded: what exports, iteration and contact sheets read."""

from __future__ import annotations

from typing import Protocol

from sb3_extra_buffers.recording.clip import Clip


class Recording(Protocol):
    """Steps that can be read, numbered from the oldest one that is kept."""

    @property
    def frame_shape(self) -> tuple[int, int, int] | None:
        """``(H, W, C)`` of a frame; ``None`` for recordings without frames."""

    def __len__(self) -> int:
        """How many steps are kept."""

    def read(self, start: int, stop: int) -> Clip:
        """Decode consecutive steps in one batch.

        :param start: the first step; 0 is the oldest that is kept
        :param stop: the one behind the last step, ``len()`` at the most
        """

    @property
    def episodes(self) -> list[range]:
        """The steps of each episode, as far as they are kept, oldest first. The last one may be unfinished."""

    def without_frames(self) -> Clip:
        """All steps, oldest first, with everything but their frames."""

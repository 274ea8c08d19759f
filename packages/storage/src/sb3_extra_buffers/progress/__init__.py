"""Bars for long work."""

from sb3_extra_buffers.progress.bar import Advance, progress_bar

__all__ = ["Advance", "progress_bar"]

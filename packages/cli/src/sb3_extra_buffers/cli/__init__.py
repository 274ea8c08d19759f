"""The command line: ``sb3-buffers``, or ``python -m sb3_extra_buffers.cli``."""

from sb3_extra_buffers.cli.app import main

__all__ = ["main"]

"""Another name of :mod:`sb3_extra_buffers.checkpoints`, kept for scripts that import it."""

from sb3_extra_buffers.checkpoints import *  # noqa: F403
from sb3_extra_buffers.checkpoints import __all__ as __all__

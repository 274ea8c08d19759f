"""What stands for the functions of the published package, which its pickled replay buffers name.

Without them, loading such a buffer fails at the name of a function. With them, the buffer itself says what to do.
"""

from __future__ import annotations

from typing import Any, NoReturn

from sb3_extra_buffers.errors import BufferStateError


def published(*_args: Any, **_kwargs: Any) -> NoReturn:
    """Can be named, not called."""
    raise BufferStateError(
        "compression_methods",
        "run a function of a version before 1",
        "only its name is left, for buffers that were pickled with it",
        "Use sb3_extra_buffers.codecs.bind instead.",
    )

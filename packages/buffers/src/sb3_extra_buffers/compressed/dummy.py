"""A stand-in for buffer classes."""

from __future__ import annotations

from typing import Any


class DummyCls:
    """Takes any arguments and does nothing with them.

    For ``custom_objects`` when a model is loaded only to be used: no buffer is made for it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs

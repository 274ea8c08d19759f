"""Interrupts at chosen lines of Python code, for rules about what a write leaves behind."""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable
from dis import opname
from types import FrameType
from typing import Any


def can_raise(frame: FrameType) -> bool:
    """Whether an exception may be raised where a frame is, as a signal handler would raise it.

    Not at a line such as ``try:``, which does nothing: Python leaves it out of the ``with`` around it, so a lock would
    stay locked. And not in generators: Python ignores exceptions while it closes one.
    """
    code = frame.f_code
    return opname[code.co_code[frame.f_lasti]] != "NOP" and not code.co_flags & inspect.CO_GENERATOR


def interrupted(call: Callable[[], object], kind: type[BaseException], tried: set[object]) -> bool:
    """Raise an exception at the first line of a call, or of what it calls, that is not among those that were tried.

    :return: whether there was such a line
    """
    count = len(tried)

    def raise_once(frame: FrameType, event: str) -> None:
        place = frame.f_code, frame.f_lineno, event
        if event in ("line", "return") and place not in tried and can_raise(frame):
            tried.add(place)
            raise kind("raised by the conformance kit")  # which also ends the tracing

    try:
        traced(call, raise_once)
    except (KeyboardInterrupt, MemoryError):
        if len(tried) == count:
            raise
    return len(tried) > count


def traced(call: Callable[[], object], at: Callable[[FrameType, str], object]) -> None:
    """Call a function, and another one with each frame and event of Python code in it, which may raise."""
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        at(frame, event)
        return trace

    # Finalizers of other objects must not run meanwhile: what is raised in them is lost.
    gc.collect(0)
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
        gc.enable()

"""Exceptions that split ``add``, ``reset`` and ``get``: at a line, by a trace function; at any moment, by a signal."""

from __future__ import annotations

import copy
import random
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import FrameType
from typing import Any

from scripts.faults.pairs import ROWS, Comparison, Kind, compare, samples_differ

#: Where the write path is: our packages, and the methods of Stable-Baselines3 that ours call.
_OURS = "sb3_extra_buffers"
_MODULES = (_OURS, "stable_baselines3.common.buffers", "stable_baselines3.her.her_replay_buffer")
#: Up to which step there are interrupts, and how many steps follow each of them.
_STEPS, _AFTER = 160, 45
#: How many rows fewer than usual a ring that evicts may hold, and how many fewer for each interrupt: the payload that
#: it leaves in the ring is that of a step, or a chunk of frames.
_EARLY, _PER_CELL, _PER_CHUNK = 3, 1, 16
Line = tuple[str, str, int]
Options = Mapping[str, Any]


@dataclass
class Outcome:
    """What came of interrupting one kind of buffer on one heap.

    :param landed: how many interrupts have split an ``add``
    :param rows: how many rows were compared
    :param wrong: how many of them were wrong
    :param errors: how many calls failed after an interrupt
    :param lost: how many rows were gone that an undisturbed buffer has
    :param details: for each place that was interrupted with a failure, the first failure in words
    """

    landed: int = 0
    rows: int = 0
    wrong: int = 0
    errors: int = 0
    lost: int = 0
    details: dict[str, str] = field(default_factory=dict)

    @property
    def failures(self) -> int:
        return self.wrong + self.errors + self.lost + (not self.landed)

    def include(self, other: Outcome) -> None:
        """Add the figures of another one."""
        for name in ("landed", "rows", "wrong", "errors", "lost"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def judge(self, where: str, found: Comparison, expected: int) -> None:
        """Count a comparison, with the number of rows that must be there at least."""
        self.rows += found.rows
        self.wrong += found.wrong
        self.lost += max(0, expected - found.kept)
        if found.wrong:
            self.tell(where, f"{found.wrong} of {found.rows} rows are wrong")
        if expected > found.kept:
            self.tell(where, f"{found.kept} rows are left of {expected}")

    def tell(self, where: str, what: str) -> None:
        """Describe a failure, unless another one of the same place is described."""
        self.details.setdefault(where.split(", at ")[0], f"{where}: {what}")

    def __str__(self) -> str:
        return f"{self.landed:7} {self.rows:9} {self.wrong:6} {self.errors:7} {self.lost:5}"


class _Trace:
    """A trace function that notes the lines of the write path, and raises at one of them."""

    def __init__(self, at: int = -1, error: BaseException | None = None) -> None:
        self.lines: list[Line] = []
        self.at, self.error = at, error

    @property
    def has_raised(self) -> bool:
        return len(self.lines) > self.at >= 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        module = frame.f_globals.get("__name__", "")
        if not module.startswith(_MODULES):
            return None
        if event == "line":
            self.lines.append((module, frame.f_code.co_name, frame.f_lineno))
            if self.error is not None and len(self.lines) == self.at + 1:
                raise self.error
        return self

    def run(self, call: Callable[[], None]) -> None:
        """Call a function with this trace."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            call()
        finally:
            sys.settrace(before)


class _Case:
    """A kind of buffer on a heap, with what is expected of it."""

    def __init__(self, kind: Kind, options: Options) -> None:
        self.kind, self._options = kind, options
        self.outcome = Outcome()
        #: Stable-Baselines3's buffer after so many steps.
        self.theirs = lru_cache(maxsize=16)(kind.theirs_after)
        #: How many rows there must be after so many steps.
        self.expected = [0]
        #: The lines of each step.
        self.lines: list[list[Line]] = []
        buffer, theirs = kind.new(options), kind.new()
        for step in range(_STEPS + _AFTER):
            trace = _Trace()
            trace.run(self.ready(buffer, step))
            self.lines.append(trace.lines)
            kind.add(theirs, step)
            self.expected.append(compare(kind, buffer, theirs).kept)
        self.evicts = buffer.memory_report().evicted > 0
        if self.evicts:
            # A payload that an interrupt has left in a ring takes room there: rows are evicted some steps earlier.
            first = next(step for step, kept in enumerate(self.expected) if kept < step)
            lowest = min(self.expected[first:])
            self.expected = [min(kept, lowest) - _EARLY for kept in self.expected]
        #: Interrupts in the life of the present buffer, and how many rows each may cost.
        self.interrupts, self._cost = 0, _PER_CHUNK if buffer._storage.frame_keys else _PER_CELL

    def new(self, steps: int = 0) -> Any:
        """Our buffer after so many steps."""
        buffer, self.interrupts = self.kind.new(self._options), 0
        for step in range(steps):
            self.kind.add(buffer, step)
        return buffer

    def judge(self, where: str, buffer: Any, steps: int, torn: int = 0) -> None:
        """Compare a buffer that has so many steps, one of which may be torn."""
        expected = self.expected[steps] - torn - (self.interrupts * self._cost if self.evicts else 0)
        self.outcome.judge(where, compare(self.kind, buffer, self.theirs(steps)), expected)

    def ready(self, buffer: Any, step: int) -> Callable[[], None]:
        """The call that adds a step, when all else is done that comes before."""
        if self.kind.is_rollout and buffer.full:
            buffer.reset()
        found: Callable[[], None] = self.kind.arguments_to(buffer, step)
        return found

    def has_moved(self, where: str, buffer: Any, step: int, before: tuple[int, bool]) -> bool:
        """Compare what is left after an interrupt; return whether the step was stored."""
        has_moved = (buffer.pos, buffer.full) != before
        self.interrupts += 1
        if has_moved or not self.kind.is_rollout or before[0]:  # at the first step of a rollout, there is nothing else
            # The step that was being overwritten is gone.
            self.judge(where, buffer, step + has_moved, before[1] and not has_moved)
        if buffer._storage.lock.lock._is_owned():
            self.outcome.errors += 1
            self.outcome.tell(where, "the lock is still held")
        return has_moved

    def finish(self, where: str, buffer: Any, steps: int) -> None:
        """Compare rows, samples and a copy after so many steps."""
        theirs, outcome = self.theirs(steps), self.outcome
        for one, which in ((buffer, ""), (copy.deepcopy(buffer), ", in a copy")):
            if one is not buffer and hasattr(theirs, "set_env"):
                one.set_env(theirs.env)  # a copy has none, as in Stable-Baselines3
            self.judge(f"{where}{which}", one, steps)
            if not self.evicts and samples_differ(self.kind, one, theirs):
                outcome.wrong += 1
                outcome.tell(where, f"{which}another sample")

    def fail(self, where: str, error: BaseException) -> None:
        self.outcome.errors += 1
        self.outcome.tell(where, f"{type(error).__name__}: {error}")


def interrupt_at_lines(kind: Kind, options: Options, every: int = 1, all_lines: bool = False) -> Outcome:
    """Raise at the lines of ``add``, each time in another buffer.

    :param every: raise at every n-th of these lines only
    :param all_lines: raise at all lines of each step that takes another way than those before it; otherwise only at
        lines that no step before it has come to
    """
    case = _Case(kind, options)
    seen: set[Line] = set()
    ways: set[frozenset[Line]] = set()
    passed = 0
    for step, lines in enumerate(case.lines[:_STEPS]):
        way = frozenset(lines)
        if way in ways or not (all_lines or way - seen):
            continue
        places = [at for at, line in enumerate(lines) if all_lines or (line not in seen and line not in lines[:at])]
        ways.add(way)
        seen |= way
        for at in places:
            passed += 1
            if passed % every == 0:
                for error in (KeyboardInterrupt("injected"), MemoryError("injected")):
                    _interrupt_once(case, step, at, error)
    return case.outcome


def interrupt_resets(kind: Kind, options: Options, every: int = 1) -> Outcome:
    """Raise at the lines of ``reset``, and of ``get`` of a rollout, each time in another buffer.

    The buffer must be as before, or empty. If it is empty, steps are added without another ``reset``.

    :param every: raise at every n-th of these lines only
    """
    case, passed = _Case(kind, options), 0
    flat = _interrupted_gets(case, every) if kind.is_rollout else []
    for prepare in (lambda: case.new(20), lambda: case.new(_STEPS), *flat):
        trace = _Trace()
        trace.run(prepare().reset)
        for at in range(len(trace.lines)):
            passed += 1
            if passed % every == 0:
                for error in (KeyboardInterrupt("injected"), MemoryError("injected")):
                    _interrupt_reset(case, prepare(), at, error)
    return case.outcome


def _interrupted_gets(case: _Case, every: int) -> list[Callable[[], Any]]:
    """Raise at the lines of ``get`` until the first batch; return how to make a rollout that was read."""
    trace = _Trace()
    trace.run(lambda: next(case.new(ROWS).get(16)))
    for at in range(0, len(trace.lines), every):
        for error in (KeyboardInterrupt("injected"), MemoryError("injected")):
            buffer = case.new(ROWS)
            where = _raised(case, _Trace(at, error), lambda: next(buffer.get(16)), "get")  # noqa: B023 - called at once
            if where and not buffer.generator_ready:
                case.finish(where, buffer, ROWS)
            elif where and samples_differ(case.kind, buffer, case.theirs(ROWS)):
                case.outcome.wrong += 1
                case.outcome.tell(where, "another sample")

    def read() -> Any:
        buffer = case.new(ROWS)
        list(buffer.get(16))
        return buffer

    return [read]


def _raised(case: _Case, trace: _Trace, call: Callable[[], Any], name: str) -> str:
    """Call with a trace that raises; return where it has, or nothing."""
    try:
        trace.run(call)
    except BaseException as raised:
        assert trace.error is not None
        if not _comes_from(raised, trace.error):
            raise
    if not trace.has_raised:
        return ""
    case.outcome.landed += 1
    module, function, line = trace.lines[trace.at]
    return f"{module}:{line} ({function}), at {name}, {type(trace.error).__name__}"


def _interrupt_reset(case: _Case, buffer: Any, at: int, error: BaseException) -> None:
    before, steps = (buffer.pos, buffer.full), ROWS + 5  # all rows are written again
    where = _raised(case, _Trace(at, error), buffer.reset, "reset")
    if not where:
        return
    try:
        if (buffer.pos, buffer.full) == before:
            if not getattr(buffer, "generator_ready", False):
                samples = compare(case.kind, buffer, case.theirs(20 if before[0] == 20 else _STEPS))
                case.outcome.judge(where, samples, 0)
            buffer.reset()
        case.interrupts = 1
        copy.deepcopy(buffer)
        for step in range(steps):
            if case.kind.is_rollout and step == ROWS:
                case.finish(where, buffer, step)
            case.kind.add(buffer, step)
        case.finish(where, buffer, steps)
    except Exception as failed:
        case.fail(where, failed)


def _interrupt_once(case: _Case, step: int, at: int, error: BaseException) -> None:
    buffer, trace, kind = case.new(step), _Trace(at, error), case.kind
    call, before = case.ready(buffer, step), (buffer.pos, buffer.full)
    where = _raised(case, trace, call, f"step {step}")
    if not where:
        return
    try:
        if not case.has_moved(where, buffer, step, before):
            case.ready(buffer, step)()
        after = step + 1
        for later in range(after, after + _AFTER):
            if later == after or later == after + 2:
                case.judge(where, buffer, later)
            kind.add(buffer, later)
        case.finish(where, buffer, after + _AFTER)
    except Exception as failed:
        case.fail(where, failed)


def _comes_from(error: BaseException | None, origin: BaseException) -> bool:
    while error is not None and error is not origin:
        error = error.__cause__ or error.__context__
    return error is origin


def interrupt_by_signals(kind: Kind, options: Options, count: int, seed: int = 0) -> Outcome:
    """Let signals arrive while steps are added, until so many have split an ``add``."""
    case, rng = _Case(kind, options), random.Random(seed)
    begin = time.perf_counter()
    case.new(_STEPS)
    typical = (time.perf_counter() - begin) / _STEPS
    fired: list[str] = []

    def raise_in_add(_: int, frame: FrameType | None) -> None:
        where = "" if frame is None else f"{frame.f_globals.get('__name__')}:{frame.f_lineno}"
        while frame is not None:
            if frame.f_globals.get("__name__", "").startswith(_OURS):
                fired.append(where)
                raise KeyboardInterrupt
            frame = frame.f_back

    old = signal.signal(signal.SIGALRM, raise_in_add)
    try:
        while case.outcome.landed < count and not case.outcome.errors:
            _add_under_fire(case, fired, lambda: rng.uniform(0, 1.5 * typical))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    return case.outcome


def _add_under_fire(case: _Case, fired: list[str], delay: Callable[[], float]) -> None:
    """Go through a buffer several times, with one or more attempts to interrupt each step."""
    buffer, where = case.new(), "before any signal"
    try:
        for step in range(_STEPS + _AFTER):
            is_stored = False
            while not is_stored:
                call, before = case.ready(buffer, step), (buffer.pos, buffer.full)
                fired.clear()
                is_stored = _call_under_fire(call, delay())
                if fired:
                    case.outcome.landed += 1
                    where = f"{fired[0]}, at step {step}, a signal"
                    is_stored = case.has_moved(where, buffer, step, before)
        case.finish(where, buffer, _STEPS + _AFTER)
    except Exception as failed:
        case.fail(where, failed)


def _call_under_fire(call: Callable[[], None], delay: float) -> bool:
    """Call, with a signal after a while; return whether that has come to its end."""
    try:
        signal.setitimer(signal.ITIMER_REAL, max(1e-6, delay))
        call()
    except KeyboardInterrupt:
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return True

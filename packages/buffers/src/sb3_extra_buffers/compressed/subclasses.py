"""What classes outside of the library keep, and whether a checkpoint does."""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import Parameter, signature, unwrap
from types import CodeType
from typing import Any

from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.errors import BufferStateError

#: Whose classes a checkpoint holds completely.
_KNOWN = {"sb3_extra_buffers", "stable_baselines3", "sb3_contrib", "abc", "builtins", "typing"}


def refuse_uncovered(buffer: Any, arguments: Mapping[str, Any], state: State) -> None:
    """Refuse to save a buffer of which something would be lost: what a subclass takes, or keeps, besides.

    :param buffer: of any class
    :param arguments: what its constructor will be called with
    :param state: what will be restored
    """
    kinds = type(buffer).__mro__
    others = [kind for kind in kinds if kind.__module__.partition(".")[0] not in _KNOWN]
    if not others:
        return
    ours = [kind for kind in kinds if kind not in others and kind is not object]
    saved = {*arguments, *state.facts, *(name.removeprefix("own/") for name in state.arrays), *buffer._transient}
    known = set().union(*(_names(kind) for kind in ours))
    kept = {name for name in vars(buffer) if not {name, name.lstrip("_")} & saved} - known
    taken = set().union(*(_parameters(kind) for kind in others if "__init__" in vars(kind)))
    taken -= saved.union(*(_parameters(kind) for kind in ours))
    if kept or taken:
        parts = [f"it takes {', '.join(sorted(taken))}"] if taken else []
        parts += [f"it keeps {', '.join(sorted(kept))}"] if kept else []
        hint = (
            "Add what it takes to _arguments(), and what it keeps to _state() and _restore(), under the same names; or "
            "name in _transient what need not be saved. The page about checkpoints shows how."
        )
        found = f"{' and '.join(parts)}, which a checkpoint would not hold"
        raise BufferStateError(type(buffer).__name__, "save", found, hint)


def _parameters(kind: type[Any]) -> set[str]:
    """What a constructor takes by name."""
    found = signature(kind).parameters.values()
    return {one.name for one in found if one.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)}


@cache
def _names(kind: type[Any]) -> frozenset[str]:
    """The attributes of a class, and those that its methods set.

    Read from the code: to compare with a plain buffer, one would have to be made, with all of its memory.
    """
    found = {*vars(kind), *vars(kind).get("__annotations__", ())}
    for code in _codes(kind):
        found |= {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_ATTR"}
    return frozenset(found)


def _codes(kind: type[Any]) -> Iterator[CodeType]:
    """The code of every method, and of the functions inside."""
    waiting: list[Any] = list(vars(kind).values())
    while waiting:
        found = waiting.pop()
        if isinstance(found, (classmethod, staticmethod)):
            waiting.append(found.__func__)
        elif isinstance(found, property):
            waiting += [found.fget, found.fset]
        elif isinstance(found, CodeType):
            yield found
            waiting += [part for part in found.co_consts if isinstance(part, CodeType)]
        elif hasattr(found, "__code__"):
            waiting.append(unwrap(found).__code__)

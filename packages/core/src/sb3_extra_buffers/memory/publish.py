"""``publish``: several assignments that no interrupt can split. Each change of a heap ends in one such call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, starmap
from operator import setitem
from typing import Any

#: Assignments ``target[key] = value``: all targets, all keys, all values.
Columns = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
NOTHING: Columns = ((), (), ())
#: The new value of an attribute: object, name, value.
Attribute = tuple[Any, str, Any]


def publish(
    targets: Sequence[Any], keys: Sequence[Any], values: Sequence[Any], attributes: Sequence[Attribute] = ()
) -> None:
    """Carry out assignments ``target[key] = value``, and such to attributes: all of them or none.

    Python runs signal handlers and trace functions between instructions of Python code. This is one call of C code, so
    an interrupt comes before all of the changes or after them. Compute everything first, then publish.

    :param targets: arrays, views, lists or dicts, whose items are assigned to
    :param keys: a key for each; for an array no list, because numpy runs signal handlers while it converts one
    :param values: a value for each; for an array neither a list nor a tuple, for the same reason
    :param attributes: new values of attributes
    """
    items = map(setitem, targets, keys, values)
    # Everything returns None, so any() goes on to the end.
    any(chain(items, starmap(setattr, attributes)) if attributes else items)

"""List all public names of the API reference, with their signatures.

``python -m scripts.public_api`` prints the list as JSON. ``tests/together/test_public_api.py`` compares it with the
list that was recorded for version 1.0.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
#: Modules whose names are part of the reference by another import path.
ALIASES = ("sb3_extra_buffers.files",)


def modules() -> list[str]:
    """The modules that the pages of the API reference document."""
    pages = sorted((ROOT / "docs" / "api").glob("*.md"))
    found = {name for page in pages for name in re.findall(r"automodule:: ([\w.]+)", page.read_text())}
    return sorted({*found, *ALIASES})


def public_api() -> dict[str, dict[str, str]]:
    """For each module, its public names and what each of them is: a signature, or the name of its type."""
    return {name: _members(importlib.import_module(name)) for name in modules()}


def _members(module: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in sorted(_names(module)):
        value = getattr(module, name)
        found[name] = _describe(value)
        if inspect.isclass(value):
            for method in sorted(_methods(value)):
                found[f"{name}.{method}"] = _describe(inspect.getattr_static(value, method))
    return found


def _names(module: Any) -> list[str]:
    names = getattr(module, "__all__", None)
    if names is not None:
        return list(names)
    own = inspect.getmembers(module, lambda value: getattr(value, "__module__", None) == module.__name__)
    return [name for name, _ in own if not name.startswith("_")]


def _methods(kind: type[Any]) -> set[str]:
    """Public members that a class of this project defines; those of others may change with their versions."""
    ours = [part for part in kind.__mro__ if part.__module__.startswith("sb3_extra_buffers")]
    return {name for part in ours for name in vars(part) if not name.startswith("_")}


def _describe(value: Any) -> str:
    if isinstance(value, (property, functools.cached_property)):
        return "property"
    if isinstance(value, (classmethod, staticmethod)):
        return f"{type(value).__name__}{_signature(value.__func__)}"
    if inspect.isclass(value):
        return f"class{_fields(value) if dataclasses.is_dataclass(value) else _signature(value)}"
    return _signature(value) if callable(value) else type(value).__name__


def _fields(kind: type[Any]) -> str:
    fields = (f"{field.name}{'' if _is_required(field) else '=…'}" for field in dataclasses.fields(kind) if field.init)
    return f"({', '.join(fields)})"


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _signature(value: Any) -> str:
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "(…)"
    # Annotations are checked by mypy, and their text differs between versions of Python.
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    text = str(inspect.Signature(plain))
    return re.sub(r"<([\w.]+)[^<>]* at 0x[0-9a-f]+>", r"<\1>", text)


if __name__ == "__main__":
    print(json.dumps(public_api(), indent=1, ensure_ascii=False))

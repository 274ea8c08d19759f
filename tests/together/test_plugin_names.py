"""Core and storage know no plugin by its name, except in the module that implements it and in the install hints."""

import ast
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
GROUPS = ("codecs", "heaps", "frame_kernels", "sum_tree_kernels")
#: The table behind install hints names every plugin.
HINTS = "sb3_extra_buffers.registry.homes"
#: Literals that equal the name of a plugin and mean something else, by module or package.
OTHER_MEANINGS = {
    # A value of prefer=, not the heap.
    "sb3_extra_buffers.stores.auto": {"memory"},
    # An empty list of names, in a sentence.
    "sb3_extra_buffers.errors": {"none"},
}


def plugins():
    """For each name of a plugin, the modules that implement one of this name."""
    found = {}
    for path in sorted(ROOT.glob("packages/*/pyproject.toml")):
        groups = tomllib.loads(path.read_text())["project"].get("entry-points", {})
        for group in GROUPS:
            for name, target in groups.get(f"sb3_extra_buffers.{group}", {}).items():
                found.setdefault(name, set()).add(target.partition(":")[0])
    return found


def literals(tree):
    """All string literals with their lines, without docstrings and other strings that are statements."""
    ignored = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in ignored:
            yield node.lineno, node.value


def sources():
    """All modules of core and storage, with their files."""
    for package in ("core", "storage"):
        folder = ROOT / "packages" / package / "src"
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def test_all_kinds_of_plugins_are_found():
    assert {"none", "zstd", "memory", "mmap", "device", "numpy", "numba"} <= {*plugins()}


def test_no_plugin_is_known_by_name():
    names, known = plugins(), []
    for module, path in sources():
        allowed = OTHER_MEANINGS.get(module, set()) | OTHER_MEANINGS.get(module.rpartition(".")[0], set())
        known += [
            f"{module}:{line} {text!r}"
            for line, text in literals(ast.parse(path.read_text()))
            if text in names and module not in (HINTS, *names[text]) and text not in allowed
        ]
    assert known == []

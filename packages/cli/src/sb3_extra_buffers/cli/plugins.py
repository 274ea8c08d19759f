"""Commands for plugins: ``codecs`` and ``heaps`` list them, ``doctor`` tries them, ``new-codec`` and ``new-heap``."""

from __future__ import annotations

import re
from dataclasses import asdict
from importlib.metadata import distributions
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Annotated, Any

import typer

from sb3_extra_buffers import codecs as codec_layer
from sb3_extra_buffers import heaps as heap_layer
from sb3_extra_buffers.cli.console import BROKEN, print_json, print_rows
from sb3_extra_buffers.doctor import examine, examine_plugins, missing_plugins, render
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.registry import Registry
from sb3_extra_buffers.stores import AUTO

Load = Annotated[bool, typer.Option("--load", help="Import and try each of them.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Folder = Annotated[Path | None, typer.Option("--folder", help="Where to write it; by default, a new folder here.")]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
#: Files of the templates, in the order in which they are written, and where each goes.
_FILES = {
    "pyproject.toml.in": "pyproject.toml",
    "$kind/README.md.in": "README.md",
    "init.py.in": "src/$package/__init__.py",
    "$kind/module.py.in": "src/$package/$module.py",
    "$kind/test_conformance.py.in": "tests/test_conformance.py",
}


def codecs(load: Load = False, json: Json = False) -> None:
    """List the codecs: the installed ones, and how to install others.

    Listing reads metadata and imports nothing.

    Examples:

        sb3-buffers codecs
        sb3-buffers codecs --load
    """
    _list("Codecs", codec_layer.registry, load, json)


def heaps(load: Load = False, json: Json = False) -> None:
    """List the heaps, which store compressed observations.

    Examples:

        sb3-buffers heaps

        sb3-buffers heaps --load --json
    """
    _list("Heaps", heap_layer.registry, load, json)


def doctor(json: Json = False) -> None:
    """Try every installed plugin, and explain what is broken. The exit code is 1 if anything is.

    Examples:

        sb3-buffers doctor

        sb3-buffers doctor --json > report.json
    """
    report = examine()
    if json:
        print_json(asdict(report))
    else:
        print(render(report))
    if not report.healthy:
        raise typer.Exit(BROKEN)


def _list(title: str, registry: Registry[Any], load: bool, json: bool) -> None:
    rows = _rows(registry, load)
    if json:
        print_json(rows)
    else:
        columns = [name for name in rows[0] if name != "works" and (name != "levels" or any(row[name] for row in rows))]
        print_rows(title, [columns, *([row[name] for name in columns] for row in rows)])
        if not load:
            print(f"--load tries each of them{', and shows their levels' if registry is codec_layer.registry else ''}.")
    if load and not all(row["works"] for row in rows if row["distribution"]):
        raise typer.Exit(BROKEN)


def _rows(registry: Registry[Any], load: bool) -> list[dict[str, Any]]:
    """One row for each plugin; ``works`` is ``None`` for a plugin that was not tried."""
    rows: list[tuple[str, str, str, str, bool | None]] = []
    if load:
        found = ((one, "ok" if one.works else "BROKEN") for one in examine_plugins(registry))
        rows = [(one.name, one.distribution, one.levels, f"{word}: {one.detail}", one.works) for one, word in found]
    for name, offers in {} if load else registry.offers().items():
        status, works = ("offered twice: uninstall one of them", False) if len(offers) > 1 else ("installed", None)
        rows.append((name, ", ".join(map(str, offers)), "", status, works))
    rows += [(name, "", "", f"not installed: {command}", False) for name, command in missing_plugins(registry).items()]
    return [dict(zip(("name", "distribution", "levels", "status", "works"), row)) for row in rows]


def new_codec(
    name: Annotated[str, typer.Argument(help="The name that users will write, such as snappy.")],
    folder: Folder = None,
) -> None:
    """Write a codec plugin to start from, which works and has tests against the contract.

    Examples:

        sb3-buffers new-codec snappy
    """
    _create(codec_layer.registry, name, folder, "snappy")


def new_heap(
    name: Annotated[str, typer.Argument(help="The name that users will write, such as redis.")],
    folder: Folder = None,
) -> None:
    """Write a heap plugin to start from, which works and has tests against the contract.

    Examples:

        sb3-buffers new-heap redis
    """
    _create(heap_layer.registry, name, folder, "redis")


def _create(registry: Registry[Any], name: str, folder: Path | None, example: str) -> None:
    """Write the files of a template, and print what to do with them."""
    kind, is_codec = registry.kind.label, registry is codec_layer.registry
    words = template_words(kind, name)
    _check_name(f"new-{kind}", registry, words, example)
    target = Path(words["distribution"]) if folder is None else folder
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        allowed = "it must not exist, or be an empty folder"
        raise ParameterError(f"new-{kind}", "folder", str(target), allowed, "Give another one with --folder.")
    paths = {source: target / Template(file).substitute(words) for source, file in _FILES.items()}
    for source, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render_template(source, words), encoding="utf-8")
    module, golden = paths["$kind/module.py.in"], target / "tests" / "golden"
    module.with_name("py.typed").touch()
    print(f'{target} has a {kind} called {name}. Next:\n\n  pip install -e "{target}[testing]"')
    if is_codec:
        golden.mkdir()
        print(f"  python -m sb3_extra_buffers.testing.freeze {name} {golden / name}.json")
    print(f"  python -m pytest {target}\n\nThen put your library into {module}; its first line says what to replace.")


def render_template(source: str, words: dict[str, str]) -> str:
    file = files("sb3_extra_buffers.cli") / "templates" / Template(source).substitute(words)
    return Template(file.read_text(encoding="utf-8")).substitute(words)


def template_words(kind: str, name: str) -> dict[str, str]:
    """The words in the template of a ``"codec"`` or a ``"heap"``."""
    module = name.replace("-", "_")
    return {
        "kind": kind,
        "name": name,
        "module": module,
        "package": f"sb3_extra_buffers_{kind}_{module}",
        "distribution": f"sb3-extra-buffers-{kind}-{name}",
        "class": "".join(part.capitalize() for part in name.split("-")),
    }


def _check_name(command: str, registry: Registry[Any], words: dict[str, str], example: str) -> None:
    name, is_codec, hint = words["name"], registry is codec_layer.registry, "Choose another name."
    taken = {*registry.names(), *registry.kind.homes, *([AUTO] if is_codec else [])}
    if not _NAME.fullmatch(name):
        allowed = "it must be lower-case letters and digits, with hyphens between"
        hint = f"Try: sb3-buffers {command} {example}"
    elif name in taken:
        allowed, hint = f"these are taken: {', '.join(sorted(taken))}", ""
    elif is_codec and (spec := codec_layer.parse(name)).name != name:
        allowed = f"it means level {spec.params['level']} of {spec.name}"
        hint = "Choose a name that does not begin with that of a codec."
    elif iskeyword(words["module"]):
        allowed = "it is a keyword, which Python cannot import"
    else:
        names = {*registry.kind.homes.values(), *(str(one.metadata["Name"]) for one in distributions())}
        if words["distribution"] not in {re.sub(r"[-_.]+", "-", one).lower() for one in names}:
            return
        allowed = f"{words['distribution']} is a distribution that exists, and installing yours would replace it"
    raise ParameterError(command, "name", name, allowed, hint)

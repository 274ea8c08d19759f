"""Commands for plugins: ``codecs`` and ``heaps`` list them, ``doctor`` tries them, ``new-codec`` and ``new-heap``."""

from __future__ import annotations

import re
from dataclasses import asdict
from importlib.metadata import distributions, requires
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Annotated, Any

import typer

from sb3_extra_buffers import codecs as codec_layer
from sb3_extra_buffers import heaps as heap_layer
from sb3_extra_buffers.cli.console import console, print_json, table
from sb3_extra_buffers.cli.entry import BROKEN
from sb3_extra_buffers.doctor import examine, examine_plugins, render
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.registry import Registry
from sb3_extra_buffers.stores import AUTO

Load = Annotated[bool, typer.Option("--load", help="Import and try each of them.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Folder = Annotated[Path | None, typer.Option("--folder", help="Where to write it; by default, a new folder here.")]

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_ANOTHER = "Choose another name."
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
    rows = _tried(registry) if load else _installed(registry)
    for name, distribution in registry.kind.homes.items():
        if name not in registry.names():
            rows.append(_row(name, "", "", f"not installed: pip install {distribution}", works=False))
    if json:
        print_json(rows)
    else:
        columns = [name for name in rows[0] if name != "works" and (name != "levels" or any(row[name] for row in rows))]
        shown = table(title, columns)
        for row in rows:
            shown.add_row(*(row[name] for name in columns))
        console().print(shown)
        if not load:
            print(f"--load tries each of them{', and shows their levels' if registry is codec_layer.registry else ''}.")
    if load and not all(row["works"] for row in rows if row["distribution"]):
        raise typer.Exit(BROKEN)


def _row(name: str, distribution: str, levels: str, status: str, works: bool | None) -> dict[str, Any]:
    """A row of the list; ``works`` is ``None`` for a plugin that was not tried."""
    return {"name": name, "distribution": distribution, "levels": levels, "status": status, "works": works}


def _installed(registry: Registry[Any]) -> list[dict[str, Any]]:
    rows = []
    for name, offers in registry.offers().items():
        twice = len(offers) > 1
        status = "offered twice: uninstall one of them" if twice else "installed"
        rows.append(_row(name, ", ".join(map(str, offers)), "", status, works=False if twice else None))
    return rows


def _tried(registry: Registry[Any]) -> list[dict[str, Any]]:
    return [
        _row(one.name, one.distribution, one.levels, f"{'ok' if one.works else 'BROKEN'}: {one.detail}", one.works)
        for one in examine_plugins(registry)
    ]


def new_codec(
    name: Annotated[str, typer.Argument(help="The name that users will write, such as snappy.")],
    folder: Folder = None,
) -> None:
    """Write a codec plugin to start from, which works and has tests against the contract.

    Examples:

        sb3-buffers new-codec snappy
    """
    target, words = _write("codec", codec_layer.registry, name, folder, "snappy")
    golden = Path("tests", "golden")
    (target / golden).mkdir()
    _print_next(target, words, f"python -m sb3_extra_buffers.testing.freeze {name} {target / golden / name}.json")


def new_heap(
    name: Annotated[str, typer.Argument(help="The name that users will write, such as redis.")],
    folder: Folder = None,
) -> None:
    """Write a heap plugin to start from, which works and has tests against the contract.

    Examples:

        sb3-buffers new-heap redis
    """
    _print_next(*_write("heap", heap_layer.registry, name, folder, "redis"))


def _write(
    kind: str, registry: Registry[Any], name: str, folder: Path | None, example: str
) -> tuple[Path, dict[str, str]]:
    """Write the files of a template, and return the folder and the words in them."""
    words = template_words(kind, name)
    _check_name(f"new-{kind}", registry, words, example)
    target = Path(words["distribution"]) if folder is None else folder
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        allowed = "it must not exist, or be an empty folder"
        raise ParameterError(f"new-{kind}", "folder", str(target), allowed, "Give another one with --folder.")
    for source, file in _FILES.items():
        path = target / Template(file).substitute(words)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render_template(source, words), encoding="utf-8")
    (target / "src" / words["package"] / "py.typed").touch()
    return target, words


def _print_next(target: Path, words: dict[str, str], *commands: str) -> None:
    print(f"{target} has a {words['kind']} called {words['name']}. Next:\n")
    for command in (f'pip install -e "{target}[testing]"', *commands, f"python -m pytest {target}"):
        print(f"  {command}")
    module = target / "src" / words["package"] / words["module"]
    print(f"\nThen put your library into {module}.py; its first line says what to replace.")


def render_template(source: str, words: dict[str, str]) -> str:
    """A file of a template, with the words of a plugin."""
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
    name = words["name"]
    if not _NAME.fullmatch(name):
        allowed = "it must be lower-case letters and digits, with hyphens between"
        raise ParameterError(command, "name", name, allowed, f"Try: sb3-buffers {command} {example}")
    is_codec = registry is codec_layer.registry
    taken = {*registry.names(), *registry.kind.homes, *([AUTO] if is_codec else [])}
    if name in taken:
        raise ParameterError(command, "name", name, f"these are taken: {', '.join(sorted(taken))}")
    if is_codec and (spec := codec_layer.parse(name)).name != name:
        allowed = f"it means level {spec.params['level']} of {spec.name}"
        raise ParameterError(command, "name", name, allowed, "Choose a name that does not begin with that of a codec.")
    if iskeyword(words["module"]):
        raise ParameterError(command, "name", name, "it is a keyword, which Python cannot import", _ANOTHER)
    if words["distribution"] in _distributions():
        allowed = f"{words['distribution']} is a distribution that exists, and installing yours would replace it"
        raise ParameterError(command, "name", name, allowed, _ANOTHER)


def _distributions() -> set[str]:
    """Names of all installed distributions, and of our own plugins, which the extras of the buffers name."""
    found = {str(one.metadata["Name"]) for one in distributions()}
    for line in requires("sb3-extra-buffers") or ():
        found.add(re.split(r"[^\w.-]", line, maxsplit=1)[0])
    return {re.sub(r"[-_.]+", "-", name).lower() for name in found}

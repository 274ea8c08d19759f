"""``new-codec``: a distribution with a codec that works and is tested, to put another library into."""

from __future__ import annotations

import re
from importlib.metadata import distributions, requires
from importlib.resources import files
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.stores import AUTO

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
#: Where each file of the template goes.
_FILES = {
    "pyproject.toml.in": "pyproject.toml",
    "README.md.in": "README.md",
    "init.py.in": "src/$package/__init__.py",
    "module.py.in": "src/$package/$module.py",
    "test_conformance.py.in": "tests/test_conformance.py",
}


def new_codec(
    name: Annotated[str, typer.Argument(help="The word that users will type, such as snappy.")],
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where to write it; by default, a new folder here.")
    ] = None,
) -> None:
    """Write a codec plugin to start from: it works, and its tests hold it to the contract.

    Examples:

        sb3-buffers new-codec snappy
    """
    words = _words(name)
    target = Path(words["distribution"]) if folder is None else folder
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        allowed = "it must not exist, or be an empty folder"
        raise ParameterError("new-codec", "folder", str(target), allowed, "Give another one with --folder.")
    for source, place in _FILES.items():
        path = target / Template(place).substitute(words)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rendered(source, words), encoding="utf-8")
    (target / "src" / words["package"] / "py.typed").touch()
    golden = Path("tests", "golden")
    (target / golden).mkdir()
    print(f"{target} has a codec called {name}. Next:\n")
    print(f'  pip install -e "{target}[testing]"')
    print(f"  python -m sb3_extra_buffers.testing.freeze {name} {target / golden / name}.json")
    print(f"  python -m pytest {target}")
    print(f"\nThen put your library into {target / 'src' / words['package'] / words['module']}.py.")


def rendered(source: str, words: dict[str, str]) -> str:
    """A file of the template, with the words of a codec in it."""
    text = (files("sb3_extra_buffers.cli") / "template" / source).read_text(encoding="utf-8")
    return Template(text).substitute(words)


def _words(name: str) -> dict[str, str]:
    if not _NAME.fullmatch(name):
        allowed = "it must be lower-case letters and digits, with hyphens between"
        raise ParameterError("new-codec", "name", name, allowed, "Try: sb3-buffers new-codec snappy")
    taken = {*codecs.names(), *codecs.registry.kind.homes, AUTO}
    if name in taken:
        raise ParameterError("new-codec", "name", name, f"these are taken: {', '.join(sorted(taken))}")
    spec = codecs.parse(name)
    if spec.name != name:
        allowed = f"it means level {spec.params['level']} of {spec.name}"
        raise ParameterError("new-codec", "name", name, allowed, "Choose a name of which no codec is the beginning.")
    words = words_of(name)
    another = "Choose another name."
    if iskeyword(words["module"]):
        raise ParameterError("new-codec", "name", name, "Python cannot import what has the name of a keyword", another)
    if words["distribution"] in _distributions():
        allowed = f"{words['distribution']} is a distribution that exists, and installing yours would replace it"
        raise ParameterError("new-codec", "name", name, allowed, another)
    return words


def _distributions() -> set[str]:
    """Names of what is installed, and of our own codecs, which the extras of the core name."""
    found = {str(one.metadata["Name"]) for one in distributions()}
    for line in requires("sb3-extra-buffers") or ():
        found.add(re.split(r"[^\w.-]", line, maxsplit=1)[0])
    return {re.sub(r"[-_.]+", "-", name).lower() for name in found}


def words_of(name: str) -> dict[str, str]:
    """What the template calls the parts of a codec.

    :param name: the word that users will type
    """
    module = name.replace("-", "_")
    return {
        "name": name,
        "module": module,
        "package": f"sb3_extra_buffers_codec_{module}",
        "distribution": f"sb3-extra-buffers-codec-{name}",
        "class": "".join(part.capitalize() for part in name.split("-")),
    }

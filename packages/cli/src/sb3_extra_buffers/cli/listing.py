"""``codecs`` and ``heaps``: what is installed, from which distribution, and whether it works."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from sb3_extra_buffers import codecs as codec_layer
from sb3_extra_buffers import heaps as heap_layer
from sb3_extra_buffers.cli.console import console, print_json, table
from sb3_extra_buffers.cli.exits import UNFORESEEN
from sb3_extra_buffers.doctor import examine_plugins
from sb3_extra_buffers.registry import Registry

Load = Annotated[bool, typer.Option("--load", help="Load and try each: this imports all of them.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True)
class _Row:
    name: str
    distribution: str
    levels: str
    status: str
    #: Whether it can be used; ``None`` if nobody has tried.
    works: bool | None


def codecs(load: Load = False, json: Json = False) -> None:
    """List the codecs: installed ones, and where to get the others.

    Listing reads metadata and imports nothing.

    Examples:

        sb3-buffers codecs

        sb3-buffers codecs --load
    """
    _show("Codecs", codec_layer.registry, load, json)


def heaps(load: Load = False, json: Json = False) -> None:
    """List the heaps, where compressed observations live.

    Examples:

        sb3-buffers heaps

        sb3-buffers heaps --load --json
    """
    _show("Heaps", heap_layer.registry, load, json)


def _show(title: str, registry: Registry[Any], load: bool, json: bool) -> None:
    rows = _tried(registry) if load else _listed(registry)
    for name, distribution in registry.kind.homes.items():
        if name not in registry.names():
            found = f"not installed: pip install {distribution}"
            rows.append(_Row(name, "", "", found, works=False))
    if json:
        print_json([asdict(row) for row in rows])
    else:
        _print(title, rows)
        if not load:
            print(f"--load tries each of them{', and tells their levels' if registry is codec_layer.registry else ''}.")
    if load and not all(row.works for row in rows if row.distribution):
        raise typer.Exit(UNFORESEEN)


def _print(title: str, rows: list[_Row]) -> None:
    has_levels = any(row.levels for row in rows)
    shown = table(title, ("name", "distribution", *(["levels"] if has_levels else []), "status"))
    for row in rows:
        shown.add_row(row.name, row.distribution, *([row.levels] if has_levels else []), row.status)
    console().print(shown)


def _listed(registry: Registry[Any]) -> list[_Row]:
    rows = []
    for name, offers in registry.offers().items():
        several = len(offers) > 1
        status = "offered twice: uninstall one of them" if several else "installed"
        rows.append(_Row(name, ", ".join(map(str, offers)), "", status, works=False if several else None))
    return rows


def _tried(registry: Registry[Any]) -> list[_Row]:
    found = examine_plugins(registry)
    return [_Row(one.name, one.distribution, one.levels, _status(one.works, one.detail), one.works) for one in found]


def _status(works: bool, detail: str) -> str:
    return f"ok: {detail}" if works else f"BROKEN: {detail}"

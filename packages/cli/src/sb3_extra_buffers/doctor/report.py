"""Load and use every installed plugin once, and report versions and errors."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from sb3_extra_buffers import codecs, frames, heaps
from sb3_extra_buffers.errors import ExtraBuffersError, HeapStateError, PayloadError
from sb3_extra_buffers.errors.install import install_command
from sb3_extra_buffers.registry import Registry

#: Versions in a bug report: our distributions, by the end of their names, and what they need or are used with.
_OURS = ("", "-core", "-storage", "-recording", "-gpu", "-cli")
_OTHERS = ("numpy", "pluggy", "stable-baselines3", "sb3-contrib", "gymnasium", "torch")


@dataclass(frozen=True)
class Finding:
    """One plugin: its distribution, and whether it works."""

    kind: str
    name: str
    distribution: str
    works: bool
    #: Its summary if it works, the whole error if it does not.
    detail: str
    #: The allowed levels, if it works and has any.
    levels: str = ""


@dataclass(frozen=True)
class Report:
    """Versions of packages, all installed plugins, and how to install others of ours."""

    versions: dict[str, str]
    findings: tuple[Finding, ...]
    #: The command for each plugin that is not installed.
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Whether every installed plugin works."""
        return all(finding.works for finding in self.findings)


def examine() -> Report:
    """Load and try every installed codec, heap and frame kernel. A broken one is a finding, not an exception."""
    versions = {"python": f"{platform.python_version()} on {sys.platform} ({platform.machine()})"}
    packages = (*(f"sb3-extra-buffers{part}" for part in _OURS), *_OTHERS)
    versions |= {package: _version(package) for package in packages}
    findings = tuple(finding for registry in _TRIALS for finding in examine_plugins(registry))
    return Report(versions, findings, {k: v for registry in _TRIALS for k, v in missing_plugins(registry).items()})


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _try_codec(name: str) -> None:
    codec = codecs.bind(name, codecs.CellSpec("u1", 64))
    cell, out = bytes(range(64)), bytearray(64)
    codec.decode_into(codec.encode(cell), out)
    if out != cell:
        raise PayloadError(name, 64, "decoding did not return the test cell")


def _try_heap(name: str) -> None:
    required = heaps.registry.load(name).required
    if set(required) - {"capacity"}:
        return  # unknown parameters: it cannot be created here
    heap = heaps.create(name, 1, **dict.fromkeys(required, 4096))
    heap.reserve(np.zeros(1, np.int64), 4)[:] = 7
    heap.commit(np.array([4]))
    starts, lengths = heap.locate(np.zeros(1, np.int64))
    if bytes(heap.view(starts.item(), lengths.item())) != bytes([7] * 4):
        raise HeapStateError(name, "read a test payload", "other bytes came back")


def _try_kernels(name: str) -> None:
    packed = []
    for one in (name, frames.REFERENCE):
        streams = frames.Streams(frames.whole(64), chunk=4, streams=1, cells=2, slots=8)
        frames.create(one).write(streams, np.arange(2), np.arange(128, dtype=np.uint8).reshape(2, 64), 0)
        packed.append(bytes(streams.filling.packed(0, 2)))
    if packed[0] != packed[1]:
        raise PayloadError(name, len(packed[0]), "test frames were packed into other bytes")


_TRIALS: dict[Registry[Any], Callable[[str], None]] = {
    codecs.registry: _try_codec,
    heaps.registry: _try_heap,
    frames.registry: _try_kernels,
}


def examine_plugins(registry: Registry[Any]) -> list[Finding]:
    """Load and try every plugin of the registry of codecs, heaps or frame kernels."""
    found = []
    for name, offers in registry.offers().items():
        works, levels = False, ""
        try:
            plugin = registry.load(name)
            _TRIALS[registry](name)
            works, detail, levels = True, plugin.summary, str(getattr(plugin, "levels", None) or "")
        except Exception as error:  # any error of a plugin belongs in the report
            detail = str(error) if isinstance(error, ExtraBuffersError) else f"{type(error).__name__}: {error}"
        found.append(Finding(registry.kind.label, name, ", ".join(map(str, offers)), works, detail, levels))
    return found


def missing_plugins(registry: Registry[Any]) -> dict[str, str]:
    """The plugins of ours that are not installed, each with the command that installs it."""
    homes = registry.kind.homes.items()
    return {name: install_command(home) for name, home in homes if name not in registry.names()}


def columns(rows: Sequence[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """Lines of plain text in columns, some of them aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    form = "  ".join(f"{{:{'>' if number in right else '<'}{width}}}" for number, width in enumerate(widths))
    return [form.format(*row).rstrip() for row in rows]


def render(report: Report) -> str:
    """The report as plain text in columns, with the full errors of broken plugins at the end."""
    rows, broken = [], [""]
    for one in report.findings:
        levels = f" (levels {one.levels})" if one.levels else ""
        detail = f"{one.detail}{levels}" if one.works else ""
        rows.append((one.kind, one.name, "ok" if one.works else "BROKEN", f"{one.distribution}  {detail}"))
        broken += [] if one.works else [f"BROKEN {one.kind} {one.name!r}: {one.detail}"]
    missing = [f"not installed: {name}: {command}" for name, command in report.missing.items()]
    verdict = [f"All {len(rows)} plugins work."] if report.healthy else []
    return "\n".join([*columns(list(report.versions.items())), "", *columns(rows), *missing, *broken, *verdict])

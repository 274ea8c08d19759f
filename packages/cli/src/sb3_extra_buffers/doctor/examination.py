"""Look at every plugin by loading it and using it once, and keep what was found."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from sb3_extra_buffers import codecs, frames, heaps
from sb3_extra_buffers.errors import ExtraBuffersError, HeapStateError, PayloadError
from sb3_extra_buffers.registry import Registry

#: Versions in a bug report: our distributions, what they need, and what they are used with.
_PACKAGES = (
    "sb3-extra-buffers",
    "sb3-extra-buffers-core",
    "sb3-extra-buffers-storage",
    "sb3-extra-buffers-recording",
    "sb3-extra-buffers-gpu",
    "sb3-extra-buffers-cli",
    "numpy",
    "pluggy",
    "stable-baselines3",
    "sb3-contrib",
    "gymnasium",
    "torch",
)


@dataclass(frozen=True)
class Finding:
    """One plugin: where it comes from and whether it can be used."""

    kind: str
    name: str
    distribution: str
    works: bool
    #: Its summary if it works, the whole error if it does not.
    detail: str
    #: The levels that it takes, if it works and has any.
    levels: str = ""


@dataclass(frozen=True)
class Report:
    """Everything that the doctor found."""

    versions: dict[str, str]
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether every plugin that is installed can be used."""
        return all(finding.works for finding in self.findings)


def examine() -> Report:
    """Load every installed codec, heap and implementation of frame kernels. A broken one is a finding, no exception."""
    versions = {"python": f"{platform.python_version()} on {sys.platform} ({platform.machine()})"}
    versions |= {package: _version(package) for package in _PACKAGES}
    return Report(versions, tuple(finding for registry in _TRIALS for finding in examine_plugins(registry)))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _try_codec(name: str) -> None:
    """Send one cell there and back."""
    codec = codecs.bind(name, codecs.CellSpec("u1", 64))
    cell, out = bytes(range(64)), bytearray(64)
    codec.decode_into(codec.encode(cell), out)
    if out != cell:
        raise PayloadError(name, 64, "a test cell did not come back")


def _try_heap(name: str) -> None:
    """Store one payload and read it."""
    required = heaps.registry.load(name).required
    if set(required) - {"capacity"}:
        return  # only its owner knows what it needs
    heap = heaps.create(name, 1, **dict.fromkeys(required, 4096))
    heap.reserve(np.zeros(1, np.int64), 4)[:] = 7
    heap.commit(np.array([4]))
    starts, lengths = heap.locate(np.zeros(1, np.int64))
    if bytes(heap.view(starts.item(), lengths.item())) != bytes([7] * 4):
        raise HeapStateError(name, "read a test payload", "other bytes came back")


def _try_kernels(name: str) -> None:
    """Pack two frames as the reference does."""
    packed, expected = (_packed(one) for one in (name, frames.REFERENCE))
    if packed != expected:
        raise PayloadError(name, len(packed), "test frames were packed into other bytes")


def _packed(name: str) -> bytes:
    streams = frames.Streams(frames.whole(64), chunk=4, streams=1, cells=2, slots=8)
    frames.create(name).write(streams, np.arange(2), np.arange(128, dtype=np.uint8).reshape(2, 64), 0)
    return bytes(streams.filling.packed(0, 2))


_TRIALS: dict[Registry[Any], Callable[[str], None]] = {
    codecs.registry: _try_codec,
    heaps.registry: _try_heap,
    frames.registry: _try_kernels,
}


def examine_plugins(registry: Registry[Any]) -> list[Finding]:
    """Load and try every plugin of one registry.

    :param registry: of codecs, heaps or frame kernels
    """
    found = []
    for name, offers in registry.offers().items():
        levels = ""
        try:
            plugin = registry.load(name)
            _TRIALS[registry](name)
        except ExtraBuffersError as error:
            works, detail = False, str(error)
        except Exception as error:  # whatever a plugin does wrong is what the report is about
            works, detail = False, f"{type(error).__name__}: {error}"
        else:
            works, detail, levels = True, plugin.summary, str(getattr(plugin, "levels", None) or "")
        found.append(Finding(registry.kind.label, name, ", ".join(map(str, offers)), works, detail, levels))
    return found

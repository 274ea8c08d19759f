"""Fixtures that several folders need: distributions that exist only for one test."""

import importlib
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from sb3_extra_buffers import codecs, frames, heaps, sum_tree

FakeDistribution = Callable[..., None]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An extra site-packages folder, seen by the registries during one test."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    modules = set(sys.modules)
    for registry in (codecs.registry, frames.registry, heaps.registry, sum_tree.registry):
        registry.refresh()
    yield folder
    for module in set(sys.modules) - modules:
        if module.startswith("fake_"):
            del sys.modules[module]
    monkeypatch.undo()
    for registry in (codecs.registry, frames.registry, heaps.registry, sum_tree.registry):
        registry.refresh()


@pytest.fixture
def install(site: Path) -> FakeDistribution:
    """Put a distribution there, with real metadata, that offers a module under a name."""

    def install(
        distribution: str, name: str, module: str, source: str, group: str = "codecs", version: str = "1.0"
    ) -> None:
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[sb3_extra_buffers.{group}]\n{name} = {module}\n")
        (site / f"{module}.py").write_text(textwrap.dedent(source))
        importlib.invalidate_caches()
        for registry in (codecs.registry, frames.registry, heaps.registry, sum_tree.registry):
            registry.refresh()

    return install

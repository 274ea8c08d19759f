"""The folders are the architecture: what stands there follows the rules of the house."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
SOURCES = sorted(ROOT.glob("packages/*/src/**/*.py"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_every_distribution_has_its_own_readme_licence_sources_and_tests(package):
    for name in ("pyproject.toml", "README.md", "LICENSE", "src", "tests"):
        assert (package / name).exists(), name
    assert list(package.glob("tests/**/test_*.py"))
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_root_of_the_namespace_is_empty():
    assert not list(ROOT.glob("packages/*/src/sb3_extra_buffers/*.py"))
    leaves = [path for path in ROOT.glob("packages/*/src/sb3_extra_buffers/*/") if path.name != "__pycache__"]
    assert [leaf.name for leaf in leaves if not (leaf / "py.typed").exists()] == []


def test_no_source_file_needs_scrolling_for_long():
    lines = {path: len(path.read_text().splitlines()) for path in SOURCES}
    assert max(lines.values()) <= 300
    assert sorted(lines.values())[len(lines) // 2] < 100


@pytest.mark.parametrize("path", [path for path in SOURCES if path.name != "__init__.py"], ids=lambda path: path.name)
def test_every_source_file_says_what_it_is_for(path):
    assert re.match(r'"""[^\n]', path.read_text())


def test_versions_march_together():
    versions = {
        re.search(r'^version = "(.+)"$', (package / "pyproject.toml").read_text(), re.MULTILINE)[1]
        for package in PACKAGES
    }
    assert len(versions) == 1
    assert f"## [{versions.pop()}]" in (ROOT / "CHANGELOG.md").read_text()


def test_a_library_that_needs_a_newer_python_is_asked_for_there_only():
    settings = (ROOT / "packages" / "recording" / "pyproject.toml").read_text()
    assert 'requires-python = ">=3.10"' in settings
    (asked,) = re.findall(r'"(minari\[.*?)"', settings)
    marker = Requirement(asked).marker
    assert [marker.evaluate({"python_version": version}) for version in ("3.10", "3.11")] == [False, True]

"""A wheel holds what users need and nothing else, and the namespace stays free."""

import os
import re
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHEELHOUSE = Path(os.environ["WHEELHOUSE"])
WHEELS = sorted(WHEELHOUSE.glob("*.whl"))
FOLDERS = [
    *sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml")),
    ROOT / "examples" / "plugin-template",
]
NAMESPACE = "sb3_extra_buffers/"


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_every_distribution_was_built():
    assert len(WHEELS) == len(FOLDERS)
    assert len(list(WHEELHOUSE.glob("*.tar.gz"))) == len(FOLDERS)


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_the_root_of_the_namespace_has_no_code(wheel):
    assert NAMESPACE + "__init__.py" not in files(wheel)
    assert not [name for name in files(wheel) if re.fullmatch(rf"{NAMESPACE}[^/]+\.pyi?", name)]


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_every_package_says_that_it_is_typed(wheel):
    tops = {re.match(rf"({NAMESPACE}[^/]+|[^/]+)/", name)[1] for name in files(wheel) if ".dist-info/" not in name}
    assert tops
    assert not [top for top in tops if f"{top}/py.typed" not in files(wheel)]


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_there_is_a_licence_and_no_test_cache_or_stray_file(wheel):
    names = files(wheel)
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    stray = [name for name in names if re.search(r"(^|/)(tests?|golden|__pycache__)/|\.(pyc|nbi|nbc|json)$", name)]
    assert stray == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_wheel_holds_every_source_file(folder):
    source = {str(path.relative_to(folder / "src")) for path in (folder / "src").rglob("*.py")}
    packed = {name for wheel in WHEELS for name in files(wheel)}
    assert source <= packed


def test_the_core_needs_numpy_and_pluggy_alone():
    core = next(wheel for wheel in WHEELS if wheel.name.startswith("sb3_extra_buffers-"))
    needed = [line for line in metadata(core).get_all("Requires-Dist") if "extra ==" not in line]
    assert sorted(re.match(r"[\w-]+", line)[0] for line in needed) == ["numpy", "pluggy"]


def test_every_plugin_asks_for_a_core_that_speaks_its_protocol():
    plugins = [wheel for wheel in WHEELS if not wheel.name.startswith("sb3_extra_buffers-")]
    assert len(plugins) == len(FOLDERS) - 1
    for wheel in plugins:
        needed = [line for line in metadata(wheel).get_all("Requires-Dist") if "extra ==" not in line]
        assert [line for line in needed if re.fullmatch(r"sb3-extra-buffers(\[\w+\])?>=1", line)], wheel.name


def test_extras_of_the_core_name_distributions_that_exist():
    core = next(wheel for wheel in WHEELS if wheel.name.startswith("sb3_extra_buffers-"))
    named = {
        match[0]
        for line in metadata(core).get_all("Requires-Dist")
        if (match := re.match(r"sb3-extra-buffers-[\w-]+", line))
    }
    assert named <= {metadata(wheel)["Name"] for wheel in WHEELS}


@pytest.mark.parametrize("archive", sorted(WHEELHOUSE.glob("*.tar.gz")), ids=lambda archive: archive.name)
def test_a_source_distribution_holds_its_tests(archive):
    with tarfile.open(archive) as tar:
        names = tar.getnames()
    assert any("/tests/test_" in name or "/tests/codecs/test_" in name for name in names)
    assert not [name for name in names if "__pycache__" in name]

"""A wheel holds what users need and nothing else, and the namespace stays free."""

import json
import os
import re
import subprocess
import sys
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
    *sorted(path.parent for path in ROOT.glob("examples/*-template/pyproject.toml")),
]
NAMESPACE = "sb3_extra_buffers/"
#: What each distribution without a library of its own needs, besides numpy.
NEEDED = {
    "sb3-extra-buffers-core": {"pluggy"},
    "sb3-extra-buffers-storage": {"sb3-extra-buffers-core"},
    "sb3-extra-buffers-heap-mmap": {"sb3-extra-buffers-core"},
    "sb3-extra-buffers-recording": {"sb3-extra-buffers-core", "sb3-extra-buffers-storage"},
    "sb3-extra-buffers": {
        "sb3-extra-buffers-core",
        "sb3-extra-buffers-heap-mmap",
        "sb3-extra-buffers-recording",
        "sb3-extra-buffers-storage",
        "gymnasium",
        "stable-baselines3",
        "torch",
    },
}
#: What people type in brackets, since the first version that was published or since 1.0.
EXTRAS = {
    *("zstd", "lz4", "isal", "numba", "fast", "mmap", "gpu", "nvcomp", "recording", "cli"),
    *("contrib", "extra", "atari", "vizdoom", "testing", "all", "sb3"),
}


def metadata(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def needed_by(wheel):
    """Names of its dependencies without those of its extras, and what it asks of each."""
    lines = [line for line in metadata(wheel).get_all("Requires-Dist") if "extra ==" not in line]
    return {match[1]: match[2] for line in lines if (match := re.match(r"([\w.-]+)(.*)", line))}


def named(name):
    return next(wheel for wheel in WHEELS if metadata(wheel)["Name"] == name)


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


def test_no_file_is_in_two_distributions():
    packed = [name for wheel in WHEELS for name in files(wheel)]
    assert len(packed) == len(set(packed))


@pytest.mark.parametrize("name", NEEDED)
def test_a_distribution_needs_what_it_uses_and_nothing_else(name):
    assert needed_by(named(name)).keys() - {"numpy"} == NEEDED[name]


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_siblings_accept_every_later_version_with_the_same_contracts(wheel):
    siblings = {name: asked for name, asked in needed_by(wheel).items() if name.startswith("sb3-extra-buffers")}
    if "example" in wheel.name:  # a stranger's plugin is held by its protocol number
        assert siblings == {"sb3-extra-buffers-core": ">=1"}
    else:
        assert set(siblings.values()) <= {"~=1.0"}


def test_every_plugin_of_codecs_and_heaps_needs_the_core_alone():
    plugins = [wheel for wheel in WHEELS if re.match(r"sb3_extra_buffers_(codec|heap)_", wheel.name)]
    assert plugins
    for wheel in plugins:
        siblings = {name for name in needed_by(wheel) if name.startswith("sb3-extra-buffers")}
        frame_kernels = {"sb3-extra-buffers-storage"} if "rle_numba" in wheel.name else set()
        assert siblings == {"sb3-extra-buffers-core", *frame_kernels}, wheel.name


def test_every_extra_that_people_type_is_there():
    assert set(metadata(named("sb3-extra-buffers")).get_all("Provides-Extra")) == EXTRAS


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_dependencies_and_extras_name_distributions_that_exist(wheel):
    ours = {
        match[0]
        for line in metadata(wheel).get_all("Requires-Dist")
        if (match := re.match(r"sb3-extra-buffers[\w-]*", line))
    }
    assert ours <= {metadata(wheel)["Name"] for wheel in WHEELS}


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_the_index_gets_a_readme_and_a_licence(wheel):
    told = metadata(wheel)
    assert told["Description-Content-Type"] == "text/markdown"
    title = "# A " if "example" in wheel.name else f"# {told['Name']}\n"
    assert told.get_payload().lstrip().startswith(title)
    assert told["License-Expression"] == "MIT"


@pytest.mark.parametrize("archive", sorted(WHEELHOUSE.glob("*.tar.gz")), ids=lambda archive: archive.name)
def test_a_source_distribution_holds_its_tests(archive):
    with tarfile.open(archive) as tar:
        names = tar.getnames()
    assert any(re.search(r"/tests/(.+/)?test_", name) for name in names)
    assert not [name for name in names if "__pycache__" in name]


def test_every_name_of_ours_is_bound_to_its_file():
    bound = dict(line.split(" @ ") for line in (WHEELHOUSE / "constraints.txt").read_text().splitlines())
    expected = {metadata(wheel)["Name"].replace("-", "_"): wheel.as_uri() for wheel in WHEELS}
    assert bound == expected


@pytest.mark.parametrize("name", ["sb3-extra-buffers-core", "sb3-extra-buffers-codec-zstd"])
def test_a_newer_version_from_elsewhere_is_not_taken(name, tmp_path):
    # Somebody else registers the name, with a version above ours.
    label = f"{name.replace('-', '_')}-1.9.0"
    with zipfile.ZipFile(tmp_path / f"{label}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{label}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.9.0\n")
        archive.writestr(f"{label}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{label}.dist-info/RECORD", "")

    def chosen(*constraints):
        pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps", "--ignore-installed"]
        asked = [*pip, "--quiet", "--report", "-", "--find-links", str(tmp_path), *constraints, f"{name}~=1.0"]
        ran = subprocess.run(asked, capture_output=True, text=True, check=True)
        return json.loads(ran.stdout)["install"][0]["metadata"]["version"]

    assert chosen() == "1.9.0"
    assert chosen("--constraint", str(WHEELHOUSE / "constraints.txt")) == metadata(named(name))["Version"]

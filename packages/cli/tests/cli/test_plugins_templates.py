"""``new-codec`` and ``new-heap`` write plugins that work."""

import importlib.metadata
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import codecs, heaps
from sb3_extra_buffers.cli import plugins
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.compressed import CompressedReplayBuffer


@pytest.fixture
def written(run, tmp_path, site):
    """Write a plugin and install it, as an installer would: the package, and metadata with its entry point."""

    def written(kind):
        folder, package = tmp_path / "new", f"sb3_extra_buffers_{kind}_my_own"
        out, _, code = run(f"new-{kind}", "my-own", "--folder", folder)
        assert code == 0
        found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert found == {
            "README.md",
            "pyproject.toml",
            f"src/{package}/__init__.py",
            f"src/{package}/my_own.py",
            f"src/{package}/py.typed",
            "tests/test_conformance.py",
        }
        assert "$" not in "".join((folder / name).read_text() for name in found)
        assert (folder / "src" / package / "my_own.py").read_text().startswith("# Replace ")
        group, entry = f"sb3_extra_buffers.{kind}s", f"{package}.my_own"
        project = (folder / "pyproject.toml").read_text()
        assert f'[project.entry-points."{group}"]\nmy-own = "{entry}"\n' in project
        (folder / "src" / package).rename(site / package)
        info = site / "my_own-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-own\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[{group}]\nmy-own = {entry}\n")
        importlib.invalidate_caches()
        for registry in (codecs.registry, heaps.registry):
            registry.refresh()
        return folder, out

    return written


def test_what_new_codec_writes_is_a_codec(written):
    folder, out = written("codec")
    assert "python -m sb3_extra_buffers.testing.freeze my-own" in out
    assert (folder / "tests" / "golden").is_dir()
    codec, out = bind("my-own", CellSpec("u1", 500)), bytearray(500)
    payload = codec.encode(bytes(500))
    codec.decode_into(payload, out)
    assert len(payload) < 100
    assert out == bytes(500)


def test_what_new_heap_writes_is_a_heap_that_keeps_the_contract(written, site):
    folder, out = written("heap")
    assert "freeze" not in out
    heap = heaps.create("my-own", 3, capacity=100)
    heap.reserve(np.array([2]), 4)[:] = 7
    heap.commit(np.array([4]))
    starts, lengths = heap.locate(np.array([2]))
    assert bytes(heap.view(starts.item(), lengths.item())) == bytes([7] * 4)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *filter(None, sys.path)])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, folder]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1800)
    assert done.returncode == 0, done.stdout
    assert " failed" not in done.stdout


def test_a_buffer_stores_its_observations_in_the_heap(written):
    written("heap")
    space, rng = spaces.Box(0, 255, (40, 40), np.uint8), np.random.default_rng(0)
    for layout in ("cells", "frames"):
        place = {"heap": "my-own", "heap_kwargs": {"capacity": 1 << 20}}
        options = {**place, "layout": layout, "compression_method": "gzip/1"}
        buffer = CompressedReplayBuffer(60, space, spaces.Discrete(2), "cpu", **options)
        images = rng.integers(0, 3, (100, 1, 40, 40), dtype=np.uint8)
        for image, following in pairwise(images):
            buffer.add(image, following, np.zeros((1, 1)), np.zeros(1), np.zeros(1), [{}])
        assert buffer.memory_report().heap == "my-own"
        for step in range(99 - 60, 99):
            assert np.array_equal(buffer.observations[step % 60], images[step])


@pytest.mark.parametrize("name", ["Snappy", "2fast", "a b", "x_y", "-x", "x--y", ""])
def test_a_name_that_no_package_can_have_is_refused(run, name):
    for command in ("new-codec", "new-heap"):
        _, err, code = run(command, "--folder", "nowhere", "--", name)
        assert code == 2
        assert "it must be lower-case letters and digits, with hyphens between" in err
        assert f"Try: sb3-buffers {command} " in err


def test_a_name_that_is_taken_is_refused(run):
    taken = {"new-codec": ("gzip", "zstd", "auto"), "new-heap": ("memory", "ring", "mmap")}
    for command, name in [(command, name) for command, names in taken.items() for name in names]:
        _, err, code = run(command, name)
        assert code == 2
        assert "these are taken: " in err


@pytest.mark.parametrize("name", ["lz4", "isal", "rle-numba"])
def test_a_name_whose_distribution_is_ours_is_refused_whether_it_is_installed_or_not(run, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for found in (plugins.distributions, lambda: ()):
        monkeypatch.setattr(plugins, "distributions", found)
        _, err, code = run("new-codec", name)
        assert code == 2
        assert f"sb3-extra-buffers-codec-{name} is a distribution that exists" in err
    assert list(tmp_path.iterdir()) == []


def test_a_name_whose_distribution_is_installed_is_refused(run, install, tmp_path):
    for kind in ("codec", "heap"):
        install(f"sb3_extra.buffers-{kind}-Mine", "other", f"fake_other_{kind}", "", group=f"{kind}s")
        _, err, code = run(f"new-{kind}", "mine", "--folder", tmp_path / "mine")
        assert code == 2
        assert "installing yours would replace it. Choose another name." in err


@pytest.mark.parametrize("name", ["import", "class", "lambda"])
def test_a_name_that_python_cannot_import_is_refused(run, name, tmp_path):
    _, err, code = run("new-codec", name, "--folder", tmp_path / "codec")
    assert code == 2
    assert "it is a keyword, which Python cannot import. Choose another name." in err


def test_a_name_that_means_a_level_of_another_codec_is_refused(run):
    _, err, code = run("new-codec", "zstd3")
    assert code == 2
    assert "it means level 3 of zstd" in err


def test_nothing_is_overwritten(run, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for command in ("new-codec", "new-heap"):
        _, err, code = run(command, "snappy", "--folder", tmp_path)
        assert code == 2
        assert "it must not exist, or be an empty folder" in err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]

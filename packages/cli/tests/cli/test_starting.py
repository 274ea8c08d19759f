"""``new-codec`` writes a plugin that works as it is."""

import importlib.metadata

import pytest

from sb3_extra_buffers import codecs
from sb3_extra_buffers.cli import starting
from sb3_extra_buffers.codecs import CellSpec, bind


def test_what_it_writes_is_a_codec(run, tmp_path, site):
    out, _, code = run("new-codec", "my-own", "--folder", tmp_path / "codec")
    assert code == 0
    assert "python -m sb3_extra_buffers.testing.freeze my-own" in out
    written = {str(path.relative_to(tmp_path / "codec")) for path in (tmp_path / "codec").rglob("*") if path.is_file()}
    assert written == {
        "README.md",
        "pyproject.toml",
        "src/sb3_extra_buffers_codec_my_own/__init__.py",
        "src/sb3_extra_buffers_codec_my_own/my_own.py",
        "src/sb3_extra_buffers_codec_my_own/py.typed",
        "tests/test_conformance.py",
    }
    # As an installer would put it there: the package, and metadata with its entry point.
    (tmp_path / "codec" / "src" / "sb3_extra_buffers_codec_my_own").rename(site / "sb3_extra_buffers_codec_my_own")
    info = site / "my_own-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-own\nVersion: 1\n")
    entry = 'my-own = "sb3_extra_buffers_codec_my_own.my_own"'
    assert entry in (tmp_path / "codec" / "pyproject.toml").read_text()
    (info / "entry_points.txt").write_text(f"[sb3_extra_buffers.codecs]\n{entry.replace(chr(34), '')}\n")
    importlib.invalidate_caches()
    codecs.registry.refresh()
    codec, out = bind("my-own", CellSpec("u1", 500)), bytearray(500)
    payload = codec.encode(bytes(500))
    codec.decode_into(payload, out)
    assert len(payload) < 100
    assert out == bytes(500)


@pytest.mark.parametrize("name", ["Snappy", "2fast", "a b", "x_y", "-x", "x--y", ""])
def test_a_name_that_no_package_can_have_is_refused(run, name):
    _, err, code = run("new-codec", "--folder", "nowhere", "--", name)
    assert code == 2
    assert "it must be lower-case letters and digits, with hyphens between" in err


def test_a_name_that_is_taken_is_refused(run):
    for name in ("gzip", "zstd", "auto"):
        _, err, code = run("new-codec", name)
        assert code == 2
        assert "these are taken: " in err


@pytest.mark.parametrize("name", ["lz4", "isal", "rle-numba"])
def test_a_name_whose_distribution_is_ours_is_refused_whether_it_is_installed_or_not(run, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for found in (starting.distributions, lambda: ()):
        monkeypatch.setattr(starting, "distributions", found)
        _, err, code = run("new-codec", name)
        assert code == 2
        assert f"sb3-extra-buffers-codec-{name} is a distribution that exists" in err
    assert list(tmp_path.iterdir()) == []


def test_a_name_whose_distribution_is_installed_is_refused(run, install, tmp_path):
    install("sb3_extra.buffers-codec-Mine", "other", "fake_other", "")
    _, err, code = run("new-codec", "mine", "--folder", tmp_path / "mine")
    assert code == 2
    assert "installing yours would replace it. Choose another name." in err


@pytest.mark.parametrize("name", ["import", "class", "lambda"])
def test_a_name_that_python_cannot_import_is_refused(run, name, tmp_path):
    _, err, code = run("new-codec", name, "--folder", tmp_path / "codec")
    assert code == 2
    assert "Python cannot import what has the name of a keyword. Choose another name." in err


def test_a_name_that_means_a_level_of_another_codec_is_refused(run):
    _, err, code = run("new-codec", "zstd3")
    assert code == 2
    assert "it means level 3 of zstd" in err


def test_nothing_is_overwritten(run, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    _, err, code = run("new-codec", "snappy", "--folder", tmp_path)
    assert code == 2
    assert "it must not exist, or be an empty folder" in err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]

"""The core with no plugin and no extra."""

import importlib
import importlib.util
from importlib.metadata import distributions

import numpy as np
import pytest

from sb3_extra_buffers import codecs, heaps, testing
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import MissingExtraError, UnknownPluginError

CELL = CellSpec(np.uint8, 100)
#: With the folder of wheels that the core was installed from, if pip recorded one.
PIP = 'pip install(?: --find-links "[^"]+")?'


def test_no_plugin_and_nothing_heavy_is_installed():
    installed = {distribution.name.lower() for distribution in distributions()}
    assert [name for name in installed if name.startswith("sb3-extra-buffers")] == ["sb3-extra-buffers-core"]
    for module in ("torch", "stable_baselines3", "numba", "zstandard", "lz4", "isal", "gymnasium"):
        assert importlib.util.find_spec(module) is None, module


def test_it_lists_and_binds_its_own():
    assert codecs.names() == ("gzip", "none", "rle")
    assert heaps.names() == ("memory", "ring")
    for name in codecs.names():
        codec, out = bind(name, CELL), bytearray(100)
        codec.decode_into(codec.encode(bytes(range(100))), out)
        assert out == bytes(range(100))


@pytest.mark.parametrize(
    ("asked", "home"),
    [
        ("zstd-3", "zstd"),
        ("lz4-frame/1", "lz4"),
        ("lz4-block", "lz4"),
        ("igzip1", "isal"),
        ("rle-jit", "rle-numba"),
        ("zst", "zstd"),
    ],
)
def test_it_says_how_to_get_the_other_codecs(asked, home):
    with pytest.raises(
        UnknownPluginError, match=rf"Installed: gzip, none, rle\..*{PIP} sb3-extra-buffers-codec-{home}$"
    ):
        bind(asked, CELL)


@pytest.mark.parametrize(("asked", "home"), [("mmap", "heap-mmap"), ("device", "gpu"), ("device-ring", "gpu")])
def test_it_says_how_to_get_the_other_heaps(asked, home):
    with pytest.raises(UnknownPluginError, match=rf"Installed: memory, ring\..*{PIP} sb3-extra-buffers-{home}$"):
        heaps.create(asked, 10)


@pytest.mark.parametrize("name", ["KERNEL_RULES", "KernelConformance", "KernelSubject"])
def test_the_kit_for_frame_kernels_says_which_distribution_it_needs(name):
    with pytest.raises(MissingExtraError, match=rf"Run: {PIP} sb3-extra-buffers-storage$"):
        getattr(testing, name)


@pytest.mark.parametrize("package", ["arrays", "frames", "stores", "checkpoints", "compressed", "recording", "cli"])
def test_packages_of_other_distributions_are_absent(package):
    with pytest.raises(ModuleNotFoundError, match=f"sb3_extra_buffers.{package}"):
        importlib.import_module(f"sb3_extra_buffers.{package}")

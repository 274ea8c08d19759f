"""The storage on the core, with no plugin and nothing else."""

import importlib.util
from importlib.metadata import distributions

import numpy as np
import pytest

from sb3_extra_buffers import frames, testing
from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.errors import UnknownPluginError

#: With the folder of wheels that the core was installed from, if pip recorded one.
PIP = 'pip install(?: --find-links "[^"]+")?'


def test_no_plugin_and_nothing_heavy_is_installed():
    installed = {distribution.name.lower() for distribution in distributions()}
    found = {name for name in installed if name.startswith("sb3-extra-buffers")}
    assert found == {"sb3-extra-buffers-core", "sb3-extra-buffers-storage"}
    for module in ("torch", "stable_baselines3", "numba", "gymnasium"):
        assert importlib.util.find_spec(module) is None, module


def test_arrays_work_without_anything_else():
    content = np.arange(40, dtype=np.uint8).repeat(500).reshape(10, 4, 500)
    array = CompressedArray((10, 4), np.uint8, (500,))
    array[:] = content
    assert np.array_equal(array[[3, 9], [0, 2]], content[[3, 9], [0, 2]])
    assert array.codec.startswith("gzip/1 (chosen: ")
    assert array.nbytes_stored < content.nbytes / 5


@pytest.mark.parametrize(
    ("parameters", "home"),
    [
        ({"heap": "mmap"}, "heap-mmap"),
        ({"heap": "device"}, "gpu"),
        ({"compression_method": "zstd"}, "codec-zstd"),
    ],
)
def test_arrays_say_which_distribution_they_need(parameters, home):
    with pytest.raises(UnknownPluginError, match=rf"Run: {PIP} sb3-extra-buffers-{home}$"):
        CompressedArray((10, 4), np.uint8, (500,), **parameters)


def test_frame_kernels_are_numpy_and_the_compiled_ones_are_explained():
    assert frames.registry.names() == ("numpy",)
    with pytest.raises(UnknownPluginError, match=rf"Run: {PIP} sb3-extra-buffers-codec-rle-numba$"):
        frames.create("numba")


def test_the_kit_has_the_rules_for_frame_kernels():
    assert testing.KERNEL_RULES

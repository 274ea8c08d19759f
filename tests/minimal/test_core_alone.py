"""The core with no plugin and no extra."""

import importlib.util
import subprocess
from importlib.metadata import distributions

import numpy as np
import pytest

from sb3_extra_buffers import codecs, compressed, heaps
from sb3_extra_buffers.arrays import CompressedArray
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.doctor import examine
from sb3_extra_buffers.errors import MissingExtraError, UnknownPluginError

CELL = CellSpec(np.uint8, 100)


def test_no_plugin_and_nothing_heavy_is_installed():
    installed = {distribution.name.lower() for distribution in distributions()}
    assert not [name for name in installed if name.startswith("sb3-extra-buffers-")]
    for module in ("torch", "stable_baselines3", "numba", "zstandard", "lz4", "isal", "gymnasium"):
        assert importlib.util.find_spec(module) is None, module


def test_it_lists_and_binds_its_own():
    assert codecs.names() == ("gzip", "none", "rle")
    assert heaps.names() == ("memory", "mmap", "ring")
    for name in codecs.names():
        codec, out = bind(name, CELL), bytearray(100)
        codec.decode_into(codec.encode(bytes(range(100))), out)
        assert out == bytes(range(100))
    assert examine().healthy


@pytest.mark.parametrize(
    ("asked", "extra"),
    [
        ("zstd-3", "zstd"),
        ("lz4-frame/1", "lz4"),
        ("lz4-block", "lz4"),
        ("igzip1", "isal"),
        ("rle-jit", "numba"),
        ("zst", "zstd"),
    ],
)
def test_it_says_how_to_get_the_rest(asked, extra):
    with pytest.raises(
        UnknownPluginError, match=rf'Installed: gzip, none, rle\..*pip install "sb3-extra-buffers\[{extra}\]>=1"'
    ):
        bind(asked, CELL)


def test_arrays_work_without_anything_else():
    frames = np.arange(40, dtype=np.uint8).repeat(500).reshape(10, 4, 500)
    array = CompressedArray((10, 4), np.uint8, (500,))
    array[:] = frames
    assert np.array_equal(array[[3, 9], [0, 2]], frames[[3, 9], [0, 2]])
    assert array.codec.startswith("gzip/1 (chosen: ")
    assert array.nbytes_stored < frames.nbytes / 5


@pytest.mark.parametrize("name", ["CompressedReplayBuffer", "CompressedMaskableRolloutBuffer", "compress_rollouts"])
def test_buffer_classes_say_which_extra_they_need(name):
    with pytest.raises(MissingExtraError, match=r'pip install "sb3-extra-buffers\[(sb3|contrib)\]>=1"'):
        getattr(compressed, name)


@pytest.mark.parametrize("module", ["training_utils.eval_model", "vec_buf"])
def test_training_utilities_say_which_extra_they_need(module):
    with pytest.raises(MissingExtraError, match=r'pip install "sb3-extra-buffers\[sb3\]>=1"'):
        importlib.import_module(f"sb3_extra_buffers.{module}")


def test_helpers_of_the_buffers_work_without_stable_baselines3():
    assert compressed.find_buffer_dtypes((84, 84)) == {"elem_type": np.uint8, "runs_type": np.uint16}
    installed = [compressed.has_zstd(), compressed.has_lz4(), compressed.has_numba(), compressed.has_igzip()]
    assert installed == [False] * 4
    with pytest.raises(MissingExtraError, match=r"sb3-extra-buffers\[numba\]"):
        compressed.init_jit()


def test_the_command_line_says_what_to_install():
    done = subprocess.run(["sb3-buffers", "codecs"], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: The command line needs the package ")
    assert '[cli]>=1"' in done.stderr
    assert done.stderr.count("\n") == 1

"""The published names, arguments, defaults and import paths are there, and importing them imports nothing heavy."""

import importlib
import inspect
import re

import numpy as np
import pytest
from stable_baselines3.common.buffers import DictReplayBuffer, DictRolloutBuffer, ReplayBuffer, RolloutBuffer

import sb3_extra_buffers.compressed as package
from sb3_extra_buffers import codecs
from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
    DummyCls,
    find_buffer_dtypes,
    find_smallest_dtype,
    init_jit,
)
from sb3_extra_buffers.errors import MissingExtraError, ParameterError
from sb3_extra_buffers.errors.install import install_command
from sb3_extra_buffers.testing.processes import attempted_imports, run_python

REQUIRED = inspect.Parameter.empty
STORAGE = {
    "dtypes": None,
    "normalize_images": False,
    "compression_method": "auto",
    "compression_kwargs": None,
    "decompression_kwargs": None,
}
SPACES = {"buffer_size": REQUIRED, "observation_space": REQUIRED, "action_space": REQUIRED, "device": "auto"}
REPLAY = {**SPACES, "n_envs": 1, "optimize_memory_usage": False, "handle_timeout_termination": True, **STORAGE}
ROLLOUT = {**SPACES, "gae_lambda": 1, "gamma": 0.99, "n_envs": 1, **STORAGE}
HOMES = ("compressed", "compressed.compression_methods", "compressed.compression_methods.compression_methods")
#: Stands where a package is looked for, and says that it is not installed.
WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize(
    ("kind", "published"),
    [
        (CompressedReplayBuffer, {**REPLAY, "output_dtype": "raw"}),
        (CompressedDictReplayBuffer, {**REPLAY, "output_dtype": "raw"}),
        (CompressedRolloutBuffer, ROLLOUT),
        (CompressedDictRolloutBuffer, ROLLOUT),
    ],
)
def test_buffers_take_the_published_arguments_in_the_published_order(kind, published):
    found = inspect.signature(kind).parameters
    positional = {name: part.default for name, part in found.items() if part.kind is part.POSITIONAL_OR_KEYWORD}
    assert list(positional.items())[: len(published)] == list(published.items())
    added = list(positional)[len(published) :]
    assert all(positional[name] is not REQUIRED for name in added)


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        (CompressedReplayBuffer, ReplayBuffer),
        (CompressedDictReplayBuffer, DictReplayBuffer),
        (CompressedDictReplayBuffer, CompressedReplayBuffer),
        (CompressedRolloutBuffer, RolloutBuffer),
        (CompressedDictRolloutBuffer, DictRolloutBuffer),
        (CompressedDictRolloutBuffer, CompressedRolloutBuffer),
    ],
)
def test_buffers_are_what_stable_baselines3_asks_for(kind, base):
    assert issubclass(kind, base)


def test_every_published_name_is_there_and_listed():
    published = {
        "CompressedRolloutBuffer",
        "CompressedDictRolloutBuffer",
        "CompressedReplayBuffer",
        "CompressedDictReplayBuffer",
        "CompressedArray",
        "DummyCls",
        "find_smallest_dtype",
        "has_igzip",
        "has_numba",
        "init_jit",
        "find_buffer_dtypes",
    }
    assert published <= set(package.__all__) <= set(dir(package))
    for name in published:
        assert getattr(package, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = package.nonsense


@pytest.mark.parametrize(
    ("home", "name"),
    [
        ("compressed_array", "CompressedArray"),
        ("compressed_replay", "CompressedReplayBuffer"),
        ("compressed_replay", "CompressedDictReplayBuffer"),
        ("compressed_rollout", "CompressedRolloutBuffer"),
        ("compressed_rollout", "CompressedDictRolloutBuffer"),
        ("utils", "find_buffer_dtypes"),
        ("utils", "find_smallest_dtype"),
    ],
)
def test_modules_that_saved_models_name_lead_to_the_same_classes(home, name):
    module = importlib.import_module(f"sb3_extra_buffers.compressed.{home}")
    assert getattr(module, name) is getattr(package, name)


@pytest.mark.parametrize(
    ("library", "names"),
    [("numba", ["rle-jit"]), ("igzip", ["igzip"]), ("zstd", ["zstd"]), ("lz4", ["lz4-frame", "lz4-block"])],
)
@pytest.mark.parametrize("home", HOMES)
def test_what_is_installed_can_be_asked_in_every_published_place(library, names, home):
    module = importlib.import_module(f"sb3_extra_buffers.{home}")
    installed = set(names) <= set(codecs.names())
    assert getattr(module, f"has_{library}")() is installed
    if home != "compressed":
        assert getattr(module, f"HAS_{library.upper()}") is installed
        with pytest.raises(AttributeError, match="has no attribute 'HAS_NONSENSE'"):
            _ = module.HAS_NONSENSE


@pytest.mark.parametrize(
    ("value", "signed", "expected"),
    [
        (0, False, np.uint8),
        (255, False, np.uint8),
        (256, False, np.uint16),
        (65535, False, np.uint16),
        (65536, False, np.uint32),
        (2**32, False, np.uint64),
        (2**64 - 1, False, np.uint64),
        (2**64, False, np.float32),
        (1e39, False, np.float64),
        (127, True, np.int8),
        (128, True, np.int16),
        (2**31, True, np.int64),
        (2**63, True, np.float32),
        (np.int64(7056), False, np.uint16),
    ],
)
def test_the_smallest_dtype_is_the_published_one(value, signed, expected):
    assert find_smallest_dtype(value, signed=signed) is expected


def test_a_number_that_no_dtype_holds_gets_the_fallback():
    for value in (np.inf, 10**400):
        assert find_smallest_dtype(value) is np.float32
        assert find_smallest_dtype(value, fallback=np.longdouble) is np.longdouble


@pytest.mark.parametrize(
    ("shape", "runs"),
    [
        (255, np.uint8),
        ((84, 84), np.uint16),
        ((210, 160, 3), np.uint32),
        ([84, 84], np.uint16),
        ((), np.uint8),
        (0, np.uint8),
    ],
)
def test_buffer_dtypes_hold_the_element_and_the_longest_run(shape, runs):
    assert find_buffer_dtypes(shape) == {"elem_type": np.uint8, "runs_type": runs}
    assert find_buffer_dtypes(shape, np.float32, "gzip3") == {"elem_type": np.float32, "runs_type": runs}


def test_a_negative_shape_has_no_dtypes():
    with pytest.raises(ParameterError, match=r"obs_shape=\(84, -1\)"):
        find_buffer_dtypes((84, -1))


def test_dtypes_are_found_without_importing_torch():
    code = """
import sys
from sb3_extra_buffers.compressed import DummyCls, find_buffer_dtypes, find_smallest_dtype, has_numba, init_jit
from sb3_extra_buffers.compressed import CompressedArray
find_buffer_dtypes((84, 84)), CompressedArray(3, "u1", (5,)), has_numba()
print([name for name in ("torch", "stable_baselines3", "gymnasium", "sb3_contrib", "numba") if name in sys.modules])
"""
    assert run_python(code) == "[]\n"


def test_importing_the_package_asks_for_nothing_heavy():
    heavy = ["torch", "stable_baselines3", "sb3_contrib", "gymnasium", "numba", "pandas", "matplotlib"]
    assert attempted_imports("sb3_extra_buffers.compressed", heavy) == []


@pytest.mark.parametrize(
    ("absent", "package_name", "extra", "names"),
    [
        ("stable_baselines3", "stable-baselines3", "sb3", ["CompressedReplayBuffer", "CompressedDictRolloutBuffer"]),
        ("torch", "torch", "sb3", ["CompressedRolloutBuffer", "compress_rollouts"]),
        (
            "sb3_contrib",
            "sb3-contrib",
            "contrib",
            ["CompressedMaskableRolloutBuffer", "CompressedRecurrentRolloutBuffer"],
        ),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(absent, package_name, extra, names):
    code = WITHOUT.format(package=absent) + (
        "import sb3_extra_buffers.compressed as package\n"
        "from sb3_extra_buffers.errors import MissingExtraError\n"
        f"for name in {names!r}:\n"
        "    try:\n"
        "        exec(f'from sb3_extra_buffers.compressed import {name}')\n"
        "    except MissingExtraError as error:\n"
        "        print(error)\n"
        "package.find_buffer_dtypes((84, 84))\n"
    )
    if absent == "sb3_contrib":
        code += "package.CompressedReplayBuffer\n"
    assert run_python(code).splitlines() == [
        f"{name} needs the package {package_name!r}, which is not installed. "
        f"Run: {install_command('sb3-extra-buffers', extra)}"
        for name in names
    ]


def test_init_jit_takes_the_published_arguments():
    storage_dtypes = dict(elem_type=np.uint8, runs_type=np.uint16)  # noqa: C408 - as it is printed everywhere
    numba = importlib.import_module("sb3_extra_buffers.compressed.compression_methods.compression_methods_numba")
    assert numba.init_jit is init_jit
    if not package.has_numba():
        command = re.escape(install_command("sb3-extra-buffers-codec-rle-numba"))
        with pytest.raises(MissingExtraError, match=f"Run: {command}$"):
            init_jit(**storage_dtypes)
        return
    assert init_jit(**storage_dtypes, compresslevel=3) is None
    assert init_jit() is None
    with pytest.raises(TypeError):
        init_jit(np.uint8)


def test_dummy_takes_anything():
    assert isinstance(DummyCls(1, 2, three=3), DummyCls)


@pytest.mark.parametrize("name", ["HerReplayBuffer", "NStepReplayBuffer", "RolloutBuffer", "ReplayBuffer"])
def test_arguments_by_position_mean_what_they_mean_in_the_original(name):
    from stable_baselines3 import HerReplayBuffer
    from stable_baselines3.common import buffers

    original = HerReplayBuffer if name == "HerReplayBuffer" else getattr(buffers, name)
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
    theirs = [part.name for part in inspect.signature(original).parameters.values() if part.kind is kinds]
    ours = list(inspect.signature(getattr(package, f"Compressed{name}")).parameters)
    assert ours[: len(theirs)] == theirs

"""What a manifest claims is compared with the size of the files before memory is allocated for it."""

import json
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedHerReplayBuffer,
    CompressedReplayBuffer,
    inspect,
)
from sb3_extra_buffers.errors import FileContentError, FileError, FileWriteError, ParameterError
from sb3_extra_buffers.testing.processes import in_fresh_process

resource = pytest.importorskip("resource")
ACTIONS, MB = spaces.Discrete(5), 1 << 20
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the address space, as Linux can")


def box(nbytes, axes=1):
    one = {"dtype": "|u1", "bytes": "AA=="}
    return {"kind": "Box", "shape": [nbytes, *[1] * (axes - 1)], "low": one, "high": one}


def array(nbytes):
    return {"array": {"shape": [nbytes], "dtype": "|u1", "bytes": "AA=="}}


ONE = {"dtype": "<i8", "bytes": "AQAAAAAAAAA="}
#: Each part is small, or what was allowed for one; all of them are gigabytes.
CLAIMS = {
    "many parts of a space": {"observation_space": {"space": {"kind": "Dict", "parts": [
        [f"{number}", box(50 * MB)] for number in range(60)
    ]}}},
    "spaces in spaces": {"observation_space": {"space": {"kind": "Dict", "parts": [
        ["a", {"kind": "Dict", "parts": [[f"{number}", box(900 * MB)] for number in range(4)]}]
    ]}}},
    "one space": {"observation_space": {"space": box(1000 * MB, 3)}},
    "bits": {"action_space": {"space": {"kind": "MultiBinary", "shape": [1 << 33]}}},
    "numbers": {"action_space": {"space": {"kind": "MultiDiscrete", "shape": [100 * MB], "nvec": ONE, "start": ONE}}},
    "a list of arrays": {"compression_kwargs": {"list": [array(100 * MB)] * 40}},
    "arrays in a mapping": {"compression_kwargs": {"mapping": [[number, array(100 * MB)] for number in range(40)]}},
    "spaces beside arrays": {"observation_space": {"space": box(60 * MB)}, "dtypes": array(20 * MB)},
    "less than nothing": {"dtypes": array(-(1 << 40)), "observation_space": {"space": box(1 << 39)}},
}  # fmt: skip


def saved(folder, kind=CompressedReplayBuffer):
    space = spaces.Box(0, 255, (4, 12, 12), np.uint8)
    space = spaces.Dict({"a": space}) if kind is CompressedDictReplayBuffer else space
    kind(30, space, ACTIONS, "cpu").save(folder)
    return folder


def claim(folder, claims):
    """Change the arguments in a manifest, with correct checksums."""
    name = folder / "manifest.safetensors"
    with checkpoints.open_arrays(name) as file:
        arrays, said = {key: file[key].copy() for key in file}, json.loads(json.dumps(file.metadata))
    said["about"]["arguments"].update(claims)
    checkpoints.write(name, arrays, said, "checkpoint")
    assert name.stat().st_size < 30_000


def with_little_memory():
    """What inspect() and load() say of each manifest, in a process that may take 200 MB more than it has."""
    told = {}
    with tempfile.TemporaryDirectory() as name:
        folder = saved(Path(name) / "checkpoint", CompressedDictReplayBuffer)
        looks = {"inspect": inspect, "load": lambda path: CompressedDictReplayBuffer.load(path, "cpu")}
        for look in looks.values():
            look(folder)  # whatever this imports and allocates is there
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 200 * MB, resource.RLIM_INFINITY))
        for label, claims in CLAIMS.items():
            claim(saved(Path(name) / label, CompressedDictReplayBuffer), claims)
            for asked, look in looks.items():
                with pytest.raises(FileContentError) as caught:
                    look(Path(name) / label)
                told[label, asked] = str(caught.value)
    return told


def test_claims_are_added_up_and_refused_before_memory_is_allocated():
    told = in_fresh_process(with_little_memory)
    assert len(told) == 2 * len(CLAIMS)
    for (label, _), text in told.items():
        assert ("invalid shape" if label == "less than nothing" else "bytes are claimed, the files have") in text


def test_large_spaces_are_allowed(tmp_path):
    space = spaces.Box(0, 255, (2160, 3840, 3), np.uint8)  # 25 MB, as are low and high
    CompressedReplayBuffer(2, space, ACTIONS, "cpu", layout="cells").save(tmp_path / "checkpoint")
    assert inspect(tmp_path / "checkpoint").observation_space == space


def test_infos_that_claim_more_than_a_file_may_are_neither_saved_nor_loaded(tmp_path, idle):
    goal = spaces.Box(-9, 9, (3,), np.float32)
    space = spaces.Dict(dict.fromkeys(("observation", "achieved_goal", "desired_goal"), goal))
    env = idle(space, ACTIONS, 1)
    obs = {key: np.zeros((1, 3), np.float32) for key in space.spaces}

    def buffer(nbytes, count=3):
        found = CompressedHerReplayBuffer(4, space, ACTIONS, env, "cpu", copy_info_dict=True)
        for _ in range(count):
            info = {"map": np.zeros(nbytes, np.uint8)}
            found.add(obs, obs, np.zeros((1, 1), int), np.zeros(1), np.zeros(1, bool), [info])
        return found

    buffer(20 * MB).save(tmp_path / "checkpoint")
    found = CompressedHerReplayBuffer.load(tmp_path / "checkpoint", "cpu", env=env)
    assert found.infos[0, 0]["map"].nbytes == 20 * MB
    with pytest.raises(ParameterError, match=r"arrays of 150,\d+,\d+ bytes"):
        buffer(50_000_000).save(tmp_path / "other")
    name = tmp_path / "checkpoint" / "manifest.safetensors"
    with checkpoints.open_arrays(name) as file:
        arrays = {key: file[key].copy() for key in file}
        key = next(key for key in arrays if key.endswith("lines"))
        arrays[key] = np.frombuffer(arrays[key].tobytes().replace(b"20971520", b"999999999"), np.uint8)
        checkpoints.write(name, arrays, file.metadata, "checkpoint")
    with pytest.raises(FileContentError, match="bytes are claimed"):
        CompressedHerReplayBuffer.load(tmp_path / "checkpoint", "cpu", env=env)


def with_few_files():
    """What save() says in a process that can open no, one, two … more files, until it succeeds."""
    told = []
    with tempfile.TemporaryDirectory() as name:
        buffer = CompressedReplayBuffer.load(saved(Path(name) / "checkpoint"), "cpu")
        number = max(int(file.name) for file in Path("/proc/self/fd").iterdir())
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        for more in range(20):
            resource.setrlimit(resource.RLIMIT_NOFILE, (number + more, limits[1]))
            try:
                buffer.save(Path(name) / "other")
                return told
            except FileError as error:
                told.append((type(error), str(error)))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    return None


def test_a_save_without_descriptors_is_an_error_of_ours_that_says_so():
    told = in_fresh_process(with_few_files)
    assert told
    assert told[0][0] is FileWriteError
    assert all("Too many open files" in text and "ulimit -n" in text for _, text in told)


def old_discrete(monkeypatch):
    """Discrete as before gymnasium 1.2.2: its constructor has no dtype."""
    real = spaces.Discrete.__init__

    def __init__(self, n, seed=None, start=0):  # noqa: N807
        real(self, n, seed, start)

    monkeypatch.setattr(spaces.Discrete, "__init__", __init__)


@pytest.mark.parametrize("is_old", [True, False])
def test_discrete_spaces_are_loaded_by_every_gymnasium(is_old, tmp_path, monkeypatch):
    if is_old:
        old_discrete(monkeypatch)
    space = spaces.Dict({"a": spaces.Discrete(7), "b": spaces.Discrete(3, start=-1)})
    CompressedDictReplayBuffer(9, space, spaces.Discrete(5, start=2), "cpu").save(tmp_path / "checkpoint")
    found = CompressedDictReplayBuffer.load(tmp_path / "checkpoint", "cpu")
    assert (found.observation_space, found.action_space) == (space, spaces.Discrete(5, start=2))
    assert found.action_space.n.dtype == np.int64


def test_a_dtype_that_this_gymnasium_does_not_know_is_an_error_of_ours(tmp_path, monkeypatch):
    with suppress(TypeError):
        action = spaces.Discrete(5, dtype=np.int32)
        CompressedReplayBuffer(9, spaces.Box(0, 1, (3,)), action, "cpu").save(tmp_path / "checkpoint")
        assert inspect(tmp_path / "checkpoint").action_space.dtype == np.int32
        old_discrete(monkeypatch)
        with pytest.raises(FileContentError, match="dtype"):
            inspect(tmp_path / "checkpoint")


class Telling(CompressedReplayBuffer):
    """Its constructor says something about the machine."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        warnings.warn("this machine is small", stacklevel=1)


def test_warnings_about_this_machine_are_shown_by_load_and_those_about_arguments_are_not(tmp_path):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        buffer = Telling(9, spaces.Box(0, 1, (3,)), ACTIONS, "cpu", dtypes=np.uint8)
        buffer.save(tmp_path / "checkpoint")
        Telling.load(tmp_path / "checkpoint", "cpu")
    expected = ["dtypes asks for uint8, which cannot hold observations of float32", "is small", "is small"]
    assert [part in str(one.message) for part, one in zip(expected, told)] == [True] * 3
    assert len(told) == 3

"""``rle`` is encoded by its compiled twin where there is one, and is ``rle`` all the same to whoever loads it."""

import copy
import pickle

import numpy as np
import pytest
from gpu_player import ACTIONS, SPACES
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer

from sb3_extra_buffers import codecs
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.compressed.checkpoint import inspect
from sb3_extra_buffers.errors import PluginLoadError
from sb3_extra_buffers.gpu_buffers import GpuDictReplayBuffer, GpuReplayBuffer, GpuRolloutBuffer
from sb3_extra_buffers.gpu_buffers.codecs.rle import CompiledRle, bind_compiled

pytestmark = pytest.mark.skipif("rle-jit" not in codecs.names(), reason="rle-jit is not installed")
IMAGE = SPACES["image"]


@pytest.fixture
def lose_numba(monkeypatch):
    """From the call on, this is a machine without it."""
    load = codecs.registry.load

    def without(name):
        if name == "rle-jit":
            raise PluginLoadError("codec", name, "nobody", "ImportError: numba")
        return load(name)

    return lambda: monkeypatch.setattr(codecs.registry, "load", without)


def test_the_twin_works_under_the_name_that_was_asked_for():
    cell = CellSpec(np.uint8, 576)
    found, plain = bind_compiled("rle", cell), bind("rle", cell)
    assert isinstance(found, CompiledRle)
    assert found.spec == plain.spec
    row = np.repeat(np.arange(8, dtype=np.uint8), 72)
    assert bytes(found.encode(row)) == bytes(plain.encode(row))
    out = np.empty_like(row)
    found.decode_into(plain.encode(row), out)
    assert np.array_equal(out, row)
    for twin in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert isinstance(twin, CompiledRle)
        assert twin.spec == plain.spec


@pytest.mark.parametrize("name", ["gzip", "none", "rle-jit"])
def test_every_other_codec_is_what_it_is(name):
    assert type(bind_compiled(name, CellSpec(np.uint8, 9))) is type(bind(name, CellSpec(np.uint8, 9)))


def test_without_numba_it_is_the_codec_itself(lose_numba):
    lose_numba()
    cell = CellSpec(np.uint8, 9)
    assert type(bind_compiled("rle", cell)) is type(bind("rle", cell))


@pytest.mark.parametrize("decode_on", ["host", "device"])
def test_a_checkpoint_is_loaded_without_numba(decode_on, lose_numba, tmp_path, play, same_batches):
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2, compression_method="rle", decode_on=decode_on)
    theirs = ReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2)
    play([ours, theirs], 55)
    ours.save(tmp_path / "checkpoint")
    assert inspect(tmp_path / "checkpoint").arguments["compression_method"] == "rle"
    assert inspect(tmp_path / "checkpoint").codecs == {"": "rle"}
    lose_numba()
    loaded = GpuReplayBuffer.load(tmp_path / "checkpoint", "cpu")
    same_batches(loaded, theirs)
    play([loaded, theirs], 9, seed=8)
    same_batches(loaded, theirs)


def test_a_pickle_is_loaded_without_numba(lose_numba, play, same_batches):
    space = spaces.Dict({"image": IMAGE, "other": IMAGE})
    ours = GpuDictReplayBuffer(40, space, ACTIONS, "cpu", 2, compression_method={"image": "rle", "other": "gzip"})
    theirs = DictReplayBuffer(40, space, ACTIONS, "cpu", 2)
    play([ours, theirs], 30)
    pickled = pickle.dumps(ours)
    lose_numba()
    same_batches(pickle.loads(pickled), theirs)


def test_what_was_saved_without_numba_is_compiled_where_it_is(lose_numba, tmp_path, monkeypatch, roll):
    lose_numba()
    ours = GpuRolloutBuffer(13, IMAGE, ACTIONS, "cpu", n_envs=2, compression_method="rle")
    roll([ours])
    ours.save(tmp_path / "rollout")
    monkeypatch.undo()
    found = GpuRolloutBuffer.load(tmp_path / "rollout", "cpu")
    assert isinstance(found._storage.observations[""].store._codec, CompiledRle)

"""What cannot be had is refused when the buffer is made, with the value, what is allowed and what to do."""

import re

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3 import DQN, PPO

from sb3_extra_buffers import codecs
from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
)
from sb3_extra_buffers.errors import (
    HeapFullError,
    ParameterError,
    UnknownPluginError,
)
from sb3_extra_buffers.errors.install import install_command

IMAGE = spaces.Box(0, 255, (20, 20), np.uint8)
DICT = spaces.Dict(image=IMAGE, more=IMAGE, vec=spaces.Box(-1, 1, (3,), np.float32))
ACTIONS = spaces.Box(-1, 1, (2,), np.float32)
each_kind = pytest.mark.parametrize(
    "kind",
    [CompressedReplayBuffer, CompressedDictReplayBuffer, CompressedRolloutBuffer, CompressedDictRolloutBuffer],
)


def make(kind, **storage):
    return kind(6, DICT if "Dict" in kind.__name__ else IMAGE, ACTIONS, n_envs=2, **storage)


@each_kind
@pytest.mark.parametrize(
    ("storage", "error", "message"),
    [
        ({"compression_method": "nowhere"}, UnknownPluginError, r"no codec named 'nowhere'. Installed: .*gzip"),
        ({"compression_method": "gziip"}, UnknownPluginError, "Did you mean 'gzip'"),
        ({"compression_method": "lz4-frame5"}, UnknownPluginError, "follows a slash: lz4-frame/5"),
        ({"compression_method": ""}, ParameterError, "name=''.*such as 'zstd'"),
        ({"compression_method": "gzip/"}, ParameterError, "name='gzip/'.*as in 'lz4-frame/5'"),
        ({"compression_method": None}, ParameterError, "compression_method=None is not allowed"),
        ({"compression_method": "gzip10"}, ParameterError, r"level=10 is not allowed; levels: 0 to 9 \(default 9\)"),
        ({"compression_method": "gzip-1"}, ParameterError, "gzip/1 is level 1"),
        ({"compression_kwargs": {"level": 3}}, ParameterError, r"\{'level': 3\}.*Name a compression_method"),
        (
            {"prefer": "size"},
            ParameterError,
            "prefer='size' is not allowed; it must be one of: speed, balanced, memory",
        ),
        ({"heap": "rign"}, UnknownPluginError, "no heap named 'rign'. Installed: .*Did you mean 'ring'"),
        ({"heap": "ring"}, ParameterError, "heap 'ring': capacity=None is not allowed; it must be given"),
        ({"heap": "ring", "heap_kwargs": {"capacity": 0}}, ParameterError, "capacity=0"),
        (
            {"heap": "ring", "heap_kwargs": {"size": 5}},
            ParameterError,
            "size=5 is not allowed; known parameters: capacity",
        ),
        ({"heap_kwargs": {"capacity": 5}}, ParameterError, "heap 'memory': capacity=5"),
        ({"heap": "mmap", "heap_kwargs": {"folder": "/no/such/folder"}}, ParameterError, "a folder that exists"),
        (
            {"heap": "mmap", "heap_kwargs": {"capacity": 1 << 55}},
            HeapFullError,
            f"{1 << 55} bytes.*Choose another folder",
        ),
        ({"output_dtype": "foat"}, ParameterError, "output_dtype='foat' is not allowed; it must be 'raw' or 'float'"),
        ({"threads": 0}, ParameterError, "threads=0 is not allowed; it must be None or an integer of at least 1"),
        ({"threads": 1.5}, ParameterError, "threads=1.5"),
        ({"threads": "2"}, ParameterError, "threads='2'"),
        ({"dtypes": {"imgae": np.uint8}}, ParameterError, "there is no 'imgae'"),
        ({"compression_method": {"imgae": "gzip"}}, ParameterError, "there is no 'imgae'"),
    ],
)
def test_what_cannot_be_had_is_refused_when_the_buffer_is_made(kind, storage, error, message):
    with pytest.raises(error, match=message):
        make(kind, **storage)


def test_parameters_of_a_heap_are_checked_also_if_nothing_goes_there():
    small = spaces.Box(-1, 1, (3,), np.float32)
    with pytest.raises(ParameterError, match="heap 'memory': capacity=5"):
        CompressedReplayBuffer(4, small, ACTIONS, heap_kwargs={"capacity": 5})


@pytest.mark.parametrize(
    ("name", "home"), [("igzip3", "isal"), ("rle-jit", "rle-numba"), ("zstd-3", "zstd"), ("lz4-frame/1", "lz4")]
)
def test_a_codec_that_is_not_installed_is_named_with_the_command_that_installs_it(name, home, monkeypatch):
    there = {known: offers for known, offers in codecs.registry.offers().items() if known in ("none", "rle", "gzip")}
    codecs.registry.refresh()
    with monkeypatch.context() as patch:
        patch.setattr(codecs.registry, "_offers", there)
        command = re.escape(install_command(f"sb3-extra-buffers-codec-{home}"))
        with pytest.raises(UnknownPluginError, match=rf"Installed: gzip, none, rle.*{command}$"):
            make(CompressedReplayBuffer, compression_method=name)
    codecs.registry.refresh()


@pytest.mark.parametrize("dtypes", ["foo", object, np.complex64, "M8[s]", {"elem_type": "foo"}])
def test_a_dtype_that_cannot_be_stored_is_refused(dtypes):
    with pytest.raises(ParameterError, match="dtype"):
        CompressedReplayBuffer(4, IMAGE, ACTIONS, dtypes=dtypes)


@each_kind
def test_a_space_of_the_other_kind_is_refused_with_the_name_of_the_right_class(kind):
    wants_dict = "Dict" in kind.__name__
    right = kind.__name__.replace("Dict", "") if wants_dict else kind.__name__.replace("Compressed", "CompressedDict")
    with pytest.raises(ParameterError, match=re.escape("observation_space=") + f".*Use {right} "):
        kind(4, IMAGE if wants_dict else DICT, ACTIONS)


def test_levels_belong_to_the_names_if_there_are_several_codecs():
    with pytest.raises(ParameterError, match=r'Put the level into the name, as in \{"image": "zstd-3"\}'):
        make(CompressedDictReplayBuffer, compression_method={"image": "gzip"}, compression_kwargs={"level": 3})


@each_kind
def test_an_argument_that_does_not_exist_is_refused_with_the_one_that_was_probably_meant(kind):
    with pytest.raises(TypeError, match=rf"{kind.__name__}\(\) got .*'compresion_method'. Did you mean 'compression_"):
        make(kind, compresion_method="gzip")


@pytest.mark.parametrize("kind", [CompressedReplayBuffer, CompressedRolloutBuffer])
def test_a_model_that_needs_another_kind_of_buffer_is_told_the_class_that_fits(kind):
    model, argument, right = PPO, "rollout_buffer_class", "CompressedRolloutBuffer"
    if kind is CompressedRolloutBuffer:
        model, argument, right = DQN, "replay_buffer_class", "CompressedReplayBuffer"
    with pytest.raises(TypeError, match=rf"{kind.__name__} does not fit: .* need a .* buffer\. Use {right}\.$"):
        model("MlpPolicy", "CartPole-v1", device="cpu", **{argument: kind})


@pytest.mark.parametrize(("kind", "model"), [(CompressedDictReplayBuffer, "PPO"), (CompressedDictRolloutBuffer, "DQN")])
def test_the_class_that_fits_is_one_for_the_space(kind, model):
    given = {"gae_lambda": 1.0} if model == "PPO" else {"optimize_memory_usage": False}
    right = kind.__name__.replace("Replay", "R0llout").replace("Rollout", "Replay").replace("R0llout", "Rollout")
    with pytest.raises(TypeError, match=rf"{model}.*Use {right}\.$"):
        kind(4, DICT, ACTIONS, **given)


@pytest.mark.parametrize(
    ("kind", "sizes", "message"),
    [
        (CompressedRolloutBuffer, {"buffer_size": 0}, "buffer_size=0 is not allowed"),
        (CompressedRolloutBuffer, {"n_envs": 0}, "n_envs=0 is not allowed"),
        (CompressedRolloutBuffer, {"buffer_size": 2.5}, "buffer_size=2.5 is not allowed"),
    ],
)
def test_a_buffer_without_room_is_refused(kind, sizes, message):
    with pytest.raises(ParameterError, match=message):
        kind(**{"buffer_size": 5, "n_envs": 1, "observation_space": IMAGE, "action_space": ACTIONS, **sizes})


@pytest.mark.parametrize("space", [spaces.Dict(deep=spaces.Dict(image=IMAGE)), spaces.Dict({"": IMAGE, "b": IMAGE})])
def test_keys_below_keys_and_keys_without_a_name_are_refused(space):
    for kind in (CompressedDictReplayBuffer, CompressedDictRolloutBuffer):
        with pytest.raises(ParameterError, match="keys must have names and no keys below"):
            kind(5, space, ACTIONS)

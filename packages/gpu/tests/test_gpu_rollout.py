"""``GpuRolloutBuffer`` on the CPU, beside Stable-Baselines3's buffer."""

import numpy as np
import pytest
from gpu_player import ACTIONS, SPACES
from gymnasium import spaces
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer

from sb3_extra_buffers.errors import HeapFullError
from sb3_extra_buffers.gpu_buffers import GpuDictRolloutBuffer, GpuRolloutBuffer

IMAGE = SPACES["image"]


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize(
    ("codec", "decode_on"), [("none", "device"), ("rle", "device"), ("gzip", "auto"), ("auto", "auto")]
)
def test_batches_are_those_of_stable_baselines3(name, codec, decode_on, roll, same_rollout):
    options = {"gae_lambda": 0.9, "gamma": 0.95, "n_envs": 3}
    ours = GpuRolloutBuffer(16, SPACES[name], ACTIONS, "cpu", compression_method=codec, decode_on=decode_on, **options)
    theirs = RolloutBuffer(16, SPACES[name], ACTIONS, "cpu", **options)
    for seed in (0, 1):  # the second rollout finds the memory of the first
        roll([ours, theirs], seed)
        same_rollout(ours, theirs)
        same_rollout(ours, theirs, size=None, seed=7)
        ours.reset()
        theirs.reset()


@pytest.mark.parametrize("decode_on", ["host", "device"])
def test_dictionaries(decode_on, roll, same_rollout):
    space = spaces.Dict({"image": IMAGE, "vec": SPACES["vector"]})
    codec = {"image": "rle", "vec": "none"}
    ours = GpuDictRolloutBuffer(12, space, ACTIONS, "cpu", n_envs=2, compression_method=codec, decode_on=decode_on)
    theirs = DictRolloutBuffer(12, space, ACTIONS, "cpu", n_envs=2)
    roll([ours, theirs])
    same_rollout(ours, theirs)


def test_one_observation_by_its_number(roll):
    ours = GpuRolloutBuffer(6, IMAGE, ACTIONS, "cpu", n_envs=2, compression_method="rle", decode_on="device")
    theirs = RolloutBuffer(6, IMAGE, ACTIONS, "cpu", n_envs=2)
    roll([ours, theirs])
    for number in range(12):
        expected = theirs.observations[number % 6, number // 6]
        assert ours.reconstruct_obs(number).numpy().tobytes() == np.ascontiguousarray(expected).tobytes()


def test_a_step_of_a_rollout_that_finds_no_room_is_refused(roll):
    ours = GpuRolloutBuffer(16, IMAGE, ACTIONS, "cpu", n_envs=2, heap_bytes=16 * 576)
    with pytest.raises(HeapFullError, match="larger heap_bytes"):
        roll([ours])
    assert ours.pos == 8


def test_a_rollout_that_evicts_must_fit_as_a_whole(roll):
    ours = GpuRolloutBuffer(16, IMAGE, ACTIONS, "cpu", n_envs=2, heap_bytes=16 * 576, on_full="evict")
    with pytest.raises(HeapFullError, match="A rollout must fit as a whole"):
        roll([ours])
    assert ours.pos == 0

"""``GpuReplayBuffer`` on the CPU, beside Stable-Baselines3's buffer and that of the core."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gpu_player import ACTIONS, SPACES, expect_equal
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_extra_buffers import codecs
from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.gpu_buffers import BaseGpuBuffer, GpuDictReplayBuffer, GpuReplayBuffer

CODECS = [*codecs.names(), "auto"]
PATHS = [(codec, "host") for codec in CODECS] + [(codec, "device") for codec in ("none", "rle", "rle-jit")]
each_path = pytest.mark.parametrize(("codec", "decode_on"), PATHS)
IMAGE = SPACES["image"]


def pair(space=IMAGE, n_envs=2, size=60, **options):
    ours = GpuReplayBuffer(size, space, ACTIONS, "cpu", n_envs, **options)
    return ours, ReplayBuffer(size, space, ACTIONS, "cpu", n_envs)


@each_path
@pytest.mark.parametrize("name", SPACES)
def test_batches_are_those_of_stable_baselines3(codec, decode_on, name, play, same_batches):
    if codec not in codecs.names() and codec != "auto":
        pytest.skip(f"{codec} is not installed")
    ours, theirs = pair(SPACES[name], compression_method=codec, decode_on=decode_on)
    for steps in (1, 17, 40):  # the last ones wrap around
        play([ours, theirs], steps, seed=steps)
        same_batches(ours, theirs)


@each_path
def test_batches_are_those_of_the_core(codec, decode_on, play, same_batches):
    if codec not in codecs.names() and codec != "auto":
        pytest.skip(f"{codec} is not installed")
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2, compression_method=codec, decode_on=decode_on)
    core = CompressedReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2, compression_method=codec)
    play([ours, core], 47)
    same_batches(ours, core)


@pytest.mark.parametrize("n_envs", [1, 3, 8])
@pytest.mark.parametrize("codec", ["none", "rle"])
def test_any_number_of_environments(n_envs, codec, play, same_batches):
    ours, theirs = pair(n_envs=n_envs, size=50, compression_method=codec, decode_on="device")
    play([ours, theirs], 80)
    same_batches(ours, theirs)


@pytest.mark.parametrize("name", ["image", "channel-last"])
@pytest.mark.parametrize(
    ("decode_on", "prefer"), [("host", "speed"), ("device", "speed"), ("host", "memory"), ("auto", "memory")]
)
def test_frames(name, decode_on, prefer, same_batches):
    space, random = SPACES[name], np.random.default_rng(3)
    options = {"compression_method": "auto", "layout": "frames", "prefer": prefer, "decode_on": decode_on}
    ours, theirs = pair(space, size=300, **options)
    frame = random.integers(0, 9, (2, 12, 12), np.uint8)
    depth, axis = min(space.shape), 1 + int(np.argmin(space.shape))
    stack = [frame] * depth
    for step in range(260):
        obs = np.stack(stack, axis=axis)
        frame = frame.copy()
        frame[:, random.integers(12), random.integers(12)] += 1
        if step % 50 == 20:
            frame = random.integers(0, 9, (2, 12, 12), np.uint8)
        stack = [*stack[1:], frame]
        args = obs, np.stack(stack, axis=axis), np.zeros(2), np.zeros(2), np.zeros(2), [{}, {}]
        for buffer in (ours, theirs):
            buffer.add(*args)
        if step in (3, 30, 170, 259):
            same_batches(ours, theirs, size=90)
    assert ours.shared_heap.live > 0


@pytest.mark.parametrize("codec", ["none", "rle"])
def test_one_observation_per_step(codec, play, same_batches):
    flags = {"optimize_memory_usage": True, "handle_timeout_termination": False}
    ours = GpuReplayBuffer(30, IMAGE, ACTIONS, "cpu", 2, compression_method=codec, decode_on="device", **flags)
    theirs = ReplayBuffer(30, IMAGE, ACTIONS, "cpu", 2, **flags)
    for steps in (9, 40):
        play([ours, theirs], steps, seed=steps)
        same_batches(ours, theirs)


def test_a_buffer_that_was_reset_is_as_good_as_new(play, same_batches):
    ours, theirs = pair(compression_method="rle", decode_on="device")
    play([ours], 70, seed=1)
    ours.reset()
    assert ours.shared_heap.live == 0
    play([ours, theirs], 20, seed=2)
    same_batches(ours, theirs)


@pytest.mark.parametrize("decode_on", ["host", "device"])
@pytest.mark.parametrize("codec", ["none", "rle"])
def test_floats_and_images_from_0_to_1(codec, decode_on, play):
    options = {"compression_method": codec, "decode_on": decode_on}
    ours, theirs = pair(normalize_images=True, **options)
    floats, _ = pair(output_dtype="float", **options)
    play([ours, theirs, floats], 20)
    for name in ("observations", "next_observations"):
        batches = []
        for buffer in (ours, theirs, floats):
            np.random.seed(0)
            batches.append(getattr(buffer.sample(60), name))
        assert th.equal(batches[0], batches[1].float() / 255)
        assert th.equal(batches[2], batches[1].float())
        assert batches[0].dtype == batches[2].dtype == th.float32


class Walk(gym.Env):
    """Observations that need to be normalized."""

    observation_space, action_space = SPACES["vector"], ACTIONS

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.normal(2, 3, 7).astype(np.float32), {}

    def step(self, action):
        return self.np_random.normal(2, 3, 7).astype(np.float32), 5.0, False, False, {}


def test_vec_normalize(play):
    env = VecNormalize(DummyVecEnv([Walk, Walk]), clip_obs=1.0)
    env.seed(0)
    env.reset()
    for _ in range(20):
        env.step(np.zeros(2, np.int64))
    ours, theirs = pair(SPACES["vector"], compression_method="rle", decode_on="device")
    play([ours, theirs], 20)
    np.random.seed(1)
    expected = theirs.sample(20, env)
    np.random.seed(1)
    expect_equal(ours.sample(20, env), expected)
    assert expected.observations.abs().max() == 1.0  # it did something


DICT = spaces.Dict({"image": IMAGE, "vec": SPACES["vector"], "count": spaces.Discrete(7)})


@pytest.mark.parametrize("decode_on", ["host", "device"])
@pytest.mark.parametrize("codec", ["rle", {"image": "rle", "vec": "none", "count": "rle"}])
def test_dictionaries(decode_on, codec, play, same_batches):
    ours = GpuDictReplayBuffer(50, DICT, ACTIONS, "cpu", 2, compression_method=codec, decode_on=decode_on)
    theirs = DictReplayBuffer(50, DICT, ACTIONS, "cpu", 2)
    for steps in (5, 60):
        play([ours, theirs], steps, seed=steps)
        same_batches(ours, theirs)
    found = ours.reconstruct_obs(3, 1)
    assert {key: part.shape for key, part in found.items()} == {"image": (576,), "vec": (7,), "count": (1,)}
    assert found["image"].numpy().tobytes() == theirs.observations["image"][3, 1].tobytes()


def test_what_is_reconstructed_is_a_flat_copy(play):
    ours, theirs = pair(compression_method="none")
    play([ours, theirs], 25)
    for read, array in (
        (ours.reconstruct_obs, theirs.observations),
        (ours.reconstruct_nextobs, theirs.next_observations),
    ):
        found = read(7, 1)
        assert found.shape == (576,)
        assert found.device == ours.buffer_device
        assert found.numpy().tobytes() == array[7, 1].tobytes()
        found.zero_()
        assert read(7, 1).numpy().tobytes() == array[7, 1].tobytes()


def test_next_observations_are_stored_once(play):
    ours = GpuReplayBuffer(100, IMAGE, ACTIONS, "cpu", 1, compression_method="none")
    still = np.random.default_rng(0).integers(255, size=(102, 1, 4, 12, 12), dtype=np.uint8)
    for step in range(100):
        ours.add(still[step], still[step + 1], np.zeros(1), np.zeros(1), np.zeros(1), [{}])
    assert ours.shared_heap.live == 100 * 576


def test_it_is_what_it_says():
    ours, _ = pair()
    assert isinstance(ours, BaseGpuBuffer)
    assert isinstance(ours, ReplayBuffer)
    assert ours.buffer_device == th.device("cpu")
    assert "none" in str(ours.memory_report())

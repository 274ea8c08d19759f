"""Buffers travel: pickled, copied, saved and loaded by Stable-Baselines3, and from device to device."""

import copy
import gc
import io
import pickle
import weakref

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gpu_player import ACTIONS, SPACES, expect_equal
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer

from sb3_extra_buffers.errors import DeviceError
from sb3_extra_buffers.gpu_buffers import GpuReplayBuffer, GpuRolloutBuffer

IMAGE = SPACES["image"]
OPTIONS = [
    {"compression_method": "none"},
    {"compression_method": "rle", "decode_on": "device"},
    {"compression_method": "gzip", "heap_bytes": 1 << 20},
    {"compression_method": "auto", "layout": "frames", "decode_on": "device"},
]
each_option = pytest.mark.parametrize("options", OPTIONS, ids=lambda options: options["compression_method"])
ROUTES = {"pickled": lambda buffer: pickle.loads(pickle.dumps(buffer)), "copied": copy.deepcopy}


class Names(pickle.Unpickler):
    """Notes every module of this project that a pickle imports from."""

    def __init__(self, file):
        super().__init__(file)
        self.modules = set()

    def find_class(self, module, name):
        if module.startswith("sb3_extra_buffers"):
            self.modules.add(module)
        return super().find_class(module, name)


@each_option
@pytest.mark.parametrize("kind", [GpuReplayBuffer, GpuRolloutBuffer])
def test_a_pickle_names_public_modules_only(options, kind):
    names = Names(io.BytesIO(pickle.dumps(kind(40, IMAGE, ACTIONS, "cpu", n_envs=2, **options))))
    assert isinstance(names.load(), kind)
    public = {"gpu_buffers", "gpu_buffers.memory", "heaps"}
    assert names.modules == {f"sb3_extra_buffers.{name}" for name in public}


@each_option
@pytest.mark.parametrize("route", ROUTES)
def test_a_twin_is_the_same_and_goes_its_own_way(options, route, play, same_batches):
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2, **options)
    theirs = ReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2)
    play([ours, theirs], 55)
    twin = ROUTES[route](ours)
    same_batches(twin, theirs)
    before = copy.deepcopy(theirs)
    play([twin, theirs], 9, seed=8)
    same_batches(twin, theirs)
    same_batches(ours, before)


@each_option
def test_moving_to_a_device_keeps_everything(options, play, same_batches):
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2, **options)
    theirs = ReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2)
    play([ours, theirs], 55)
    assert ours.to("cpu") is ours
    same_batches(ours, theirs)
    play([ours, theirs], 9, seed=8)
    same_batches(ours, theirs)


def test_what_was_saved_on_a_device_that_is_absent_is_loaded_to_the_cpu(play, same_batches):
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2, compression_method="rle")
    theirs = ReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2)
    play([ours, theirs], 30)
    restore, (kind, cells, parameters, snapshot) = ours.shared_heap.__reduce__()
    absent = "cuda:7" if th.cuda.is_available() else "cuda"
    with pytest.warns(UserWarning, match="kept on the CPU"):
        heap = restore(kind, cells, {**parameters, "device": absent}, snapshot)
    assert heap.device == th.device("cpu")
    everything = np.arange(cells)
    held = np.flatnonzero(heap.locate(everything)[1])
    assert len(held)
    for cell in held[:, np.newaxis]:
        pieces = [bytes(part.view(*(n.item() for n in part.locate(cell)))) for part in (heap, ours.shared_heap)]
        assert pieces[0] == pieces[1]


class Screen(gym.Env):
    """Images, as small as a convolution allows."""

    observation_space, action_space = gym.spaces.Box(0, 255, (1, 36, 36), np.uint8), ACTIONS

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observe(), {}

    def observe(self):
        return self.np_random.integers(0, 3, (1, 36, 36), np.uint8)

    def step(self, action):
        self.steps += 1
        return self.observe(), float(action), self.steps % 7 == 0, self.steps % 11 == 0, {}


def dqn(buffer_class, **options):
    return DQN(
        "CnnPolicy",
        Screen(),
        buffer_size=60,
        learning_starts=20,
        train_freq=4,
        batch_size=8,
        seed=3,
        device="cpu",
        replay_buffer_class=buffer_class,
        replay_buffer_kwargs=options,
    )


def weights(model):
    return [part.detach().numpy().tobytes() for part in model.policy.state_dict().values()]


@pytest.mark.parametrize("codec", ["none", "rle"])
def test_dqn_learns_the_same_saves_and_resumes(codec, tmp_path):
    theirs = dqn(ReplayBuffer).learn(90)
    ours = dqn(GpuReplayBuffer, compression_method=codec, decode_on="device").learn(90)
    assert weights(ours) == weights(theirs)
    ours.save(tmp_path / "model")
    ours.save_replay_buffer(tmp_path / "replay")
    resumed = DQN.load(tmp_path / "model", env=Screen(), device="cpu")
    resumed.load_replay_buffer(tmp_path / "replay")
    assert isinstance(resumed.replay_buffer, GpuReplayBuffer)
    np.random.seed(0)
    expected = theirs.replay_buffer.sample(50)
    np.random.seed(0)
    expect_equal(resumed.replay_buffer.sample(50), expected)
    resumed.learn(20, reset_num_timesteps=False)
    assert resumed.num_timesteps > 100


def test_ppo_learns_the_same():
    def ppo(buffer_class, **options):
        return PPO(
            "CnnPolicy",
            Screen(),
            n_steps=16,
            batch_size=8,
            n_epochs=2,
            seed=3,
            device="cpu",
            rollout_buffer_class=buffer_class,
            rollout_buffer_kwargs=options,
        )

    theirs = ppo(RolloutBuffer).learn(32)
    ours = ppo(GpuRolloutBuffer, compression_method="rle", decode_on="device").learn(32)
    assert weights(ours) == weights(theirs)


def test_a_buffer_that_nobody_needs_goes_away(play):
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2, compression_method="rle", decode_on="device")
    play([ours], 20)
    ours.sample(10)
    ours.reconstruct_obs(3, 1)
    gone = weakref.ref(ours)
    del ours
    gc.collect()
    assert gone() is None


def test_a_device_that_does_not_exist(play):
    ours = GpuReplayBuffer(40, IMAGE, ACTIONS, "cpu", 2)
    play([ours], 5)
    with pytest.raises(DeviceError, match=r"nowhere.*Devices here: cpu"):
        ours.to("nowhere")
    with pytest.raises(DeviceError, match=r"nowhere.*Devices here: cpu"):
        GpuReplayBuffer(9, IMAGE, ACTIONS, "cpu", buffer_device="nowhere")
    assert ours.sample(3).observations.shape == (3, 4, 12, 12)

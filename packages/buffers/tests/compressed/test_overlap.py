"""Batches whose observations and next observations overlap in memory: the same values, in fewer bytes."""

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from sb3_contrib import QRDQN, TQC
from stable_baselines3 import DQN, SAC, TD3
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecFrameStack, VecNormalize, VecTransposeImage
from stacked_scenes import EVENTS, KINDS, STACKS, Scene, add, make, sampled

from sb3_extra_buffers import frames
from sb3_extra_buffers.compressed import CompressedPrioritizedReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.errors import ParameterError

#: Stacks whose frames are contiguous in an observation.
FIRST = ["gray first", "colour first", "deep"]


def overlaps(batch):
    """Whether observations and next observations of a batch share memory, and begin one frame apart."""
    obs, next_obs = batch.observations, batch.next_observations
    distance = next_obs.data_ptr() - obs.data_ptr()
    return 0 < distance < obs[0].numel() * obs.element_size()


@pytest.fixture(params=["numpy", "installed"])
def _kernels(request, monkeypatch):
    """Frame kernels in numpy, and those that are installed."""
    if request.param == "numpy":
        reference = frames.create("numpy")
        monkeypatch.setattr(frames, "create", lambda name=None: reference)


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("n_envs", [1, 3])
def test_samples_are_those_of_the_original(kind, stack, n_envs):
    scene = Scene(stack, n_envs, seed=1)
    ours, theirs = make(kind, scene, 23, n_envs, layout="frames", overlap=True)
    for number in range(70):
        # First shifts and resets only, across the end of the buffer; then everything that can happen to a stack.
        weights = [0.8, 0.1, 0.05, 0, 0, 0.05] if number < 45 else [0.8, 0.05, 0.05, 0.02, 0.03, 0.05]
        add([ours, theirs], scene, scene.rng.choice(EVENTS, n_envs, p=weights), number)
        if number % 6 == 5:
            assert sampled(ours, number) == sampled(theirs, number)


@pytest.mark.usefixtures("_kernels")
@pytest.mark.parametrize("stack", FIRST)
@pytest.mark.parametrize("prefer", ["speed", "memory"])
def test_shifts_overlap_across_resets_ends_of_episodes_and_the_end_of_the_buffer(stack, prefer):
    scene = Scene(stack, 2, seed=3)
    ours, _ = make("plain", scene, 30, 2, layout="frames", prefer=prefer, overlap=True)
    for number in range(80):
        add([ours], scene, scene.rng.choice(["shift", "zeros", "repeat", "end"], 2, p=[0.7, 0.1, 0.1, 0.1]), number)
        assert overlaps(ours.sample(40))


@pytest.mark.usefixtures("_kernels")
def test_one_pair_that_is_no_shift_makes_the_batch_separate():
    scene = Scene("gray first", 1, seed=3)
    ours, _ = make("plain", scene, 30, 1, layout="frames", overlap=True)
    for number in range(29):
        add([ours], scene, ["shift"], number)
    assert overlaps(ours.sample(200))
    add([ours], scene, ["junk"], 29)
    assert not overlaps(ours.sample(200))
    assert ours.sample(200).observations.is_contiguous()


def test_prioritized_batches_overlap():
    scene = Scene("gray first", 1, seed=3)
    buffers = [
        CompressedPrioritizedReplayBuffer(30, scene.space, spaces.Discrete(4), "cpu", layout="frames", overlap=overlap)
        for overlap in (False, True)
    ]
    for number in range(40):
        add(buffers, scene, ["shift"], number)
    batches = []
    for buffer in buffers:
        np.random.seed(0)
        batches.append(buffer.sample(20))
    assert [overlaps(batch) for batch in batches] == [False, True]
    assert th.equal(batches[0].observations, batches[1].observations)
    assert th.equal(batches[0].next_observations, batches[1].next_observations)


@pytest.mark.parametrize("stack", ["gray last", "colour last", "not stacked"])
def test_frames_that_are_not_contiguous_in_an_observation_never_overlap(stack):
    scene = Scene(stack, 1, seed=3)
    ours, _ = make("plain", scene, 30, 1, layout="frames", overlap=True)
    for number in range(30):
        add([ours], scene, ["shift"], number)
    assert not overlaps(ours.sample(20))
    assert ours.sample(20).observations.is_contiguous()


def test_batches_are_separate_unless_asked():
    scene = Scene("gray first", 1, seed=3)
    ours, _ = make("plain", scene, 30, 1, layout="frames")
    for number in range(30):
        add([ours], scene, ["shift"], number)
    batch = ours.sample(20)
    assert not overlaps(batch)
    expected = batch.next_observations.clone()
    batch.observations.zero_()
    assert th.equal(batch.next_observations, expected)


def test_observations_of_several_bytes_per_number_overlap():
    space = spaces.Box(-9, 9, (3, 16, 16), np.float32)
    buffer = CompressedReplayBuffer(20, space, spaces.Discrete(2), device="cpu", layout="frames", overlap=True)
    shown = np.random.default_rng(0).normal(size=(24, 16, 16)).astype(np.float32)
    for step in range(20):
        buffer.add(shown[None, step : step + 3], shown[None, step + 1 : step + 4], *rest())
    np.random.seed(0)
    batch = buffer.sample(50)
    np.random.seed(0)
    rows = np.random.randint(0, 20, 50)
    assert overlaps(batch)
    for row, obs, next_obs in zip(rows.tolist(), batch.observations.numpy(), batch.next_observations.numpy()):
        np.testing.assert_array_equal(obs, shown[row : row + 3])
        np.testing.assert_array_equal(next_obs, shown[row + 1 : row + 4])


def rest():
    return np.zeros((1, 1), np.int64), np.zeros(1, np.float32), np.zeros(1, np.float32), [{}]


def test_batches_that_are_drawn_ahead_overlap():
    scene = Scene("gray first", 2, seed=3)
    ahead, plain = (
        make("plain", scene, 30, 2, layout="frames", prefetch=True, overlap=overlap)[0] for overlap in (True, False)
    )
    for number in range(40):
        add([ahead, plain], scene, ["shift", "shift"], number)
    for seed in range(5):
        assert sampled(ahead, seed) == sampled(plain, seed)
    assert overlaps(ahead.sample(30))


def test_batches_that_are_kept_are_not_overwritten_by_those_that_follow():
    scene = Scene("deep", 1, seed=3)
    ours, _ = make("plain", scene, 300, 1, layout="frames", overlap=True)
    for number in range(300):
        add([ours], scene, ["shift"], number)
    kept = [ours.sample(64) for _ in range(6)]
    copies = [(batch.observations.clone(), batch.next_observations.clone()) for batch in kept]
    for _ in range(6):
        ours.sample(64)
    assert all(overlaps(batch) for batch in kept)
    for batch, (obs, next_obs) in zip(kept, copies):
        assert th.equal(batch.observations, obs)
        assert th.equal(batch.next_observations, next_obs)


def test_copies_pickles_and_checkpoints_go_on_alike(tmp_path):
    scene = Scene("gray first", 1, seed=3)
    ours, _ = make("plain", scene, 30, 1, layout="frames", overlap=True)
    for number in range(40):
        add([ours], scene, ["shift"], number)
    ours.save(tmp_path)
    for again in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), CompressedReplayBuffer.load(tmp_path, "cpu")):
        assert again.overlap
        assert overlaps(again.sample(30))
        assert sampled(again, 0) == sampled(ours, 0)


@pytest.mark.parametrize("overlap", ["yes", None, 1])
def test_overlap_is_yes_or_no(overlap):
    with pytest.raises(ParameterError, match="overlap"):
        CompressedReplayBuffer(30, spaces.Box(0, 255, (4, 20, 20), np.uint8), spaces.Discrete(2), overlap=overlap)


class Race(gym.Env):
    """A block that moves on a screen of 40 x 40. Episodes end by success or by timeout."""

    def __init__(self, continuous):
        self.observation_space = spaces.Box(0, 255, (40, 40, 1), np.uint8)
        self.action_space = spaces.Box(-1, 1, (1,), np.float32) if continuous else spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = int(self.np_random.integers(0, 30)), 0
        return self.observe(), {}

    def step(self, action):
        self.place = (self.place + int(np.round(np.sum(action)))) % 36
        self.steps += 1
        return self.observe(), self.place / 36, self.place == 35, self.steps >= 17, {}

    def observe(self):
        image = np.zeros((40, 40, 1), np.uint8)
        image[self.place : self.place + 5, self.steps : self.steps + 9] = 200
        return image


def stacked(continuous):
    return VecTransposeImage(VecFrameStack(make_vec_env(Race, 2, seed=0, env_kwargs={"continuous": continuous}), 4))


@pytest.mark.parametrize(
    ("kind", "continuous", "is_normalized"),
    [
        (DQN, False, False),
        (DQN, False, True),
        (QRDQN, False, False),
        (SAC, True, False),
        (TD3, True, False),
        (TQC, True, False),
    ],
    ids=["DQN", "DQN normalized", "QR-DQN", "SAC", "TD3", "TQC"],
)
def test_learning_from_batches_that_overlap_changes_no_weight(kind, continuous, is_normalized, monkeypatch):
    found, seen = [], []
    threads = th.get_num_threads()
    th.set_num_threads(1)
    sample = CompressedReplayBuffer.sample
    monkeypatch.setattr(
        CompressedReplayBuffer, "sample", lambda self, *args, **more: _noted(seen, sample(self, *args, **more))
    )
    try:
        # By default, batches overlap once it is chosen how to store images; frames that are asked for do so at once.
        for storage in (None, {"overlap": False}, {"overlap": True, "layout": "frames"}):
            env = stacked(continuous)
            ours = {"replay_buffer_class": CompressedReplayBuffer, "replay_buffer_kwargs": storage}
            model = kind(
                "CnnPolicy",
                VecNormalize(env, norm_obs=False) if is_normalized else env,
                buffer_size=120,
                learning_starts=20,
                batch_size=16,
                train_freq=8,
                policy_kwargs={"net_arch": [8], "features_extractor_kwargs": {"features_dim": 16}},
                seed=0,
                device="cpu",
                **({} if storage is None else ours),
            )
            model.learn(160)
            found.append(model.policy.state_dict())
    finally:
        th.set_num_threads(threads)
    half = len(seen) // 2
    assert seen == [False] * half + [not is_normalized] * half  # VecNormalize makes copies
    assert half > 0
    for name, value in found[0].items():
        assert th.equal(value, found[1][name]), name
        assert th.equal(value, found[2][name]), name


def _noted(seen, batch):
    seen.append(overlaps(batch))
    return batch

"""Models that learn from compressed buffers end with the weights that they would have had without compression."""

import copy
import csv
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from sb3_contrib import QRDQN, MaskablePPO, RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv
from stable_baselines3.common.logger import KVWriter, Logger, configure
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecNormalize

from sb3_extra_buffers.compressed import (
    BufferMemoryCallback,
    CompressedDictReplayBuffer,
    CompressedDictRolloutBuffer,
    CompressedHerReplayBuffer,
    CompressedMaskableDictRolloutBuffer,
    CompressedMaskableRolloutBuffer,
    CompressedNStepReplayBuffer,
    CompressedRecurrentDictRolloutBuffer,
    CompressedRecurrentRolloutBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
    compress_rollouts,
)
from sb3_extra_buffers.errors import BufferStateError


class Chase(gym.Env):
    """A block and a target, on a screen or in 80 numbers. Episodes end by success or by timeout."""

    def __init__(self, kind, continuous):
        image, scan = spaces.Box(0, 255, (3, 40, 40), np.uint8), spaces.Box(-1, 1, (80,), np.float32)
        self.observation_space = {"image": image, "scan": scan}.get(kind, spaces.Dict({"image": image, "scan": scan}))
        self.action_space = spaces.Box(-1, 1, (1,), np.float32) if continuous else spaces.Discrete(3)
        self.kind = kind

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.target = self.np_random.integers(0, 16, 2)
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        move = int(np.sign(action).item()) if isinstance(self.action_space, spaces.Box) else int(action) - 1
        self.place = (self.place + move) % 16
        self.steps += 1
        reward = 1.0 - abs(int(self.place) - int(self.target)) / 8
        return self.observe(), reward, bool(self.place == self.target), self.steps >= 11, {}

    def action_masks(self):
        return np.array([self.place > 0, True, self.place < 15])

    def observe(self):
        image = np.zeros((3, 40, 40), np.uint8)
        image[0, self.place], image[1, :, self.target], image[2, : self.steps] = 255, 128, 9
        scan = np.repeat(np.float32([self.place, self.target, self.steps, 8, 0]) / 16, 16)
        return {"image": image, "scan": scan}.get(self.kind, {"image": image, "scan": scan})


class Small(BaseFeaturesExtractor):
    def __init__(self, observation_space):
        super().__init__(observation_space, 8)
        self.image = th.nn.Sequential(th.nn.Conv2d(3, 4, 4, 4), th.nn.ReLU(), th.nn.Flatten(), th.nn.Linear(400, 8))
        self.scan = th.nn.Linear(80, 8)

    def forward(self, observations):
        if isinstance(observations, dict):
            return self.image(observations["image"]) + self.scan(observations["scan"])
        return self.image(observations) if observations.ndim == 4 else self.scan(observations)


def chase(kind="image", continuous=False):
    return make_vec_env(Chase, 2, seed=0, env_kwargs={"kind": kind, "continuous": continuous})


def flip_bits():
    return make_vec_env(BitFlippingEnv, 2, seed=0, env_kwargs={"n_bits": 6})


NET = {"net_arch": [8], "features_extractor_class": Small}
REPLAY = {"buffer_size": 150, "learning_starts": 40, "batch_size": 16, "train_freq": 4, "policy_kwargs": NET}
ROLLOUT = {"n_steps": 16, "batch_size": 8, "n_epochs": 2, "policy_kwargs": NET}


def builder(model, policy, make_env, settings, **other):
    def build(**more):
        # Copied, because models change the dictionaries that they are given.
        return model(policy, make_env(), device="cpu", seed=0, **copy.deepcopy({**settings, **other, **more}))

    build.__name__ = f"{model.__name__} {policy}"
    return build


chase_both, steer = partial(chase, "both"), partial(chase, "scan", continuous=True)
dqn = builder(DQN, "CnnPolicy", chase, REPLAY)
qr_dqn = builder(QRDQN, "CnnPolicy", chase, REPLAY, policy_kwargs={**NET, "n_quantiles": 5})
sac = builder(SAC, "MlpPolicy", steer, REPLAY)
td3 = builder(TD3, "MlpPolicy", steer, REPLAY)
dict_dqn = builder(DQN, "MultiInputPolicy", chase_both, REPLAY)
normalized_sac = builder(SAC, "MlpPolicy", lambda: VecNormalize(steer()), REPLAY)
normalized_dqn = builder(DQN, "CnnPolicy", lambda: VecNormalize(chase()), REPLAY)
her_dqn = builder(DQN, "MultiInputPolicy", flip_bits, REPLAY, policy_kwargs={"net_arch": [8]})
ppo = builder(PPO, "CnnPolicy", chase, ROLLOUT)
dict_ppo = builder(PPO, "MultiInputPolicy", chase_both, ROLLOUT)
a2c = builder(A2C, "CnnPolicy", chase, {"n_steps": 16, "policy_kwargs": NET})
maskable_ppo = builder(MaskablePPO, "CnnPolicy", chase, ROLLOUT)
maskable_dict_ppo = builder(MaskablePPO, "MultiInputPolicy", chase_both, ROLLOUT)
lstm = {**NET, "lstm_hidden_size": 8}
recurrent_ppo = builder(RecurrentPPO, "CnnLstmPolicy", chase, ROLLOUT, policy_kwargs=lstm)
recurrent_dict_ppo = builder(RecurrentPPO, "MultiInputLstmPolicy", chase_both, ROLLOUT, policy_kwargs=lstm)


@pytest.fixture(autouse=True)
def _one_thread():
    threads = th.get_num_threads()
    th.set_num_threads(1)
    yield
    th.set_num_threads(threads)


def weights(model):
    return {name: value.clone() for name, value in model.policy.state_dict().items()}


@pytest.fixture
def same_training(same):
    """Check that two models that learn end with the same weights, and that they have learned."""

    def check(ours, theirs, steps=240):
        found = []
        for build in (ours, theirs):
            model = build()  # sets the seeds
            before = weights(model)
            model.learn(steps, reset_num_timesteps=False)
            found.append((before, weights(model)))
        same(*found)
        assert any((found[0][0][name] != value).any() for name, value in found[0][1].items())

    return check


@pytest.mark.parametrize("method", ["auto", "gzip"])
@pytest.mark.parametrize(
    ("build", "ours", "storage", "theirs"),
    [
        (dqn, CompressedReplayBuffer, {}, {}),
        (qr_dqn, CompressedReplayBuffer, {}, {}),
        (sac, CompressedReplayBuffer, {}, {}),
        (td3, CompressedReplayBuffer, {}, {}),
        (dict_dqn, CompressedDictReplayBuffer, {}, {}),
        (normalized_sac, CompressedReplayBuffer, {}, {}),
        (normalized_dqn, CompressedReplayBuffer, {}, {}),
        (dqn, CompressedNStepReplayBuffer, {"n_steps": 3, "gamma": 0.99}, {"n_steps": 3}),
        (her_dqn, CompressedHerReplayBuffer, {}, {"replay_buffer_class": HerReplayBuffer}),
    ],
    ids=["DQN", "QR-DQN", "SAC", "TD3", "DQN Dict", "SAC normalized", "DQN normalized", "DQN 3 steps", "DQN HER"],
)
def test_learning_from_a_compressed_replay_buffer_changes_no_weight(
    build, ours, storage, theirs, method, same_training
):
    storage = {"compression_method": method, **storage}

    def compressed():
        model = build(replay_buffer_class=ours, replay_buffer_kwargs=storage)
        assert type(model.replay_buffer) is ours
        return model

    same_training(compressed, lambda: build(**theirs))


ON_POLICY = [
    (ppo, CompressedRolloutBuffer),
    (dict_ppo, CompressedDictRolloutBuffer),
    (a2c, CompressedRolloutBuffer),
    (maskable_ppo, CompressedMaskableRolloutBuffer),
    (maskable_dict_ppo, CompressedMaskableDictRolloutBuffer),
]
RECURRENT = [
    (recurrent_ppo, CompressedRecurrentRolloutBuffer),
    (recurrent_dict_ppo, CompressedRecurrentDictRolloutBuffer),
]


@pytest.mark.parametrize("method", ["auto", "gzip"])
@pytest.mark.parametrize(("build", "ours"), [*ON_POLICY, *RECURRENT])
def test_learning_from_rollouts_that_are_compressed_afterwards_changes_no_weight(build, ours, method, same_training):
    def compressed():
        model = compress_rollouts(build(), compression_method=method)
        assert type(model.rollout_buffer) is ours
        return model

    same_training(compressed, build, steps=96)


@pytest.mark.parametrize("storage", [{"compression_method": "gzip"}, {"prefetch": True}], ids=["gzip", "prefetch"])
@pytest.mark.parametrize(("build", "ours"), ON_POLICY)  # RecurrentPPO takes no class
def test_learning_from_a_compressed_rollout_buffer_changes_no_weight(build, ours, storage, same_training):
    same_training(lambda: build(rollout_buffer_class=ours, rollout_buffer_kwargs=storage), build, steps=96)


@pytest.mark.parametrize("build", [dqn, normalized_sac, dict_dqn])
def test_learning_from_batches_that_are_drawn_ahead_gives_the_same_weights_each_time(build, same_training):
    kind = CompressedDictReplayBuffer if build is dict_dqn else CompressedReplayBuffer
    ahead = {"replay_buffer_class": kind, "replay_buffer_kwargs": {"prefetch": True}}
    same_training(lambda: build(**ahead), lambda: build(**ahead))


def test_memory_can_be_optimized_together_with_timeouts(same_training):
    def compressed():
        model = dqn(optimize_memory_usage=True, replay_buffer_class=CompressedReplayBuffer)
        assert model.replay_buffer.handle_timeout_termination
        return model

    same_training(compressed, dqn)


def test_memory_that_is_optimized_without_timeouts_changes_no_weight(same_training):
    both = {"optimize_memory_usage": True, "replay_buffer_kwargs": {"handle_timeout_termination": False}}
    same_training(lambda: dqn(replay_buffer_class=CompressedReplayBuffer, **both), lambda: dqn(**both))


@pytest.mark.parametrize("steps", [96, 400], ids=["half full", "overwritten"])
@pytest.mark.parametrize(
    ("build", "ours", "theirs"),
    [(dqn, CompressedReplayBuffer, ReplayBuffer), (her_dqn, CompressedHerReplayBuffer, HerReplayBuffer)],
    ids=["DQN", "HER"],
)
@pytest.mark.filterwarnings("ignore:The last trajectory in the replay buffer will be truncated")
def test_training_resumes_from_a_saved_buffer_as_from_an_original_one(
    build, ours, theirs, steps, same_training, tmp_path
):
    def resume(kind):
        model = build(replay_buffer_class=kind)
        model.learn(steps)
        model.save(tmp_path / "model.zip")
        model.save_replay_buffer(tmp_path / "buffer.pkl")
        again = DQN.load(tmp_path / "model.zip", env=build(replay_buffer_class=kind).env, device="cpu")
        again.load_replay_buffer(tmp_path / "buffer.pkl")
        assert type(again.replay_buffer) is kind
        assert again.replay_buffer.size() == model.replay_buffer.size() == min(steps // 2, 75)
        again.set_random_seed(1)
        return again

    same_training(lambda: resume(ours), lambda: resume(theirs))


class Notes(KVWriter):
    def __init__(self):
        self.written = []

    def write(self, key_values, key_excluded, step=0):
        self.written.append(dict(key_values))


def test_the_log_of_rollouts_says_what_the_buffer_takes(capsys):
    model, notes = ppo(rollout_buffer_class=CompressedRolloutBuffer), Notes()
    model.set_logger(Logger(folder=None, output_formats=[notes]))
    model.learn(64, callback=BufferMemoryCallback(verbose=1, log_freq=1))
    report = model.rollout_buffer.memory_report()
    assert len(notes.written) == 2
    last = notes.written[-1]
    assert last["buffer/ratio"] == report.ratio
    assert last["buffer/raw_mb"] == 32 * 4800 / 1e6
    assert last["buffer/stored_mb"] == (report.live_nbytes + report.overhead) / 1e6
    assert capsys.readouterr().out == f"{report}\n"


def test_the_log_of_a_replay_buffer_grows_with_it(tmp_path):
    model = dqn(replay_buffer_class=CompressedReplayBuffer)
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(300, callback=BufferMemoryCallback(log_freq=1), log_interval=4)
    model.logger.close()
    rows = list(csv.DictReader((tmp_path / "progress.csv").read_text().splitlines()))
    raw = [float(row["buffer/raw_mb"]) for row in rows]
    assert len(set(raw)) > 1
    assert raw == sorted(raw)
    assert raw[-1] == pytest.approx(150 * 2 * 4800 / 1e6)  # next observations count
    assert all(float(row["buffer/stored_mb"]) > 0 and float(row["buffer/ratio"]) > 0 for row in rows)


@pytest.mark.parametrize(("log_freq", "looks"), [(100, 2), (1000, 1)])
def test_a_replay_buffer_is_not_looked_at_after_every_step(log_freq, looks, monkeypatch):
    model, seen, report = dqn(replay_buffer_class=CompressedReplayBuffer), [], CompressedReplayBuffer.memory_report
    monkeypatch.setattr(CompressedReplayBuffer, "memory_report", lambda self: seen.append(self.pos) or report(self))
    model.learn(180, callback=BufferMemoryCallback(log_freq=log_freq))
    assert len(seen) == looks


@pytest.mark.parametrize("build", [dqn, ppo])
def test_a_model_without_a_compressed_buffer_has_nothing_to_log(build):
    with pytest.raises(BufferStateError, match=r"BufferMemoryCallback.*its buffer is not a compressed one"):
        build().learn(10, callback=BufferMemoryCallback(log_freq=1))

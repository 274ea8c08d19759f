"""Algorithms with prioritized replay: the originals at alpha=0, weighted gradients and TD errors otherwise."""

import copy
import threading
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3 import DDPG, DQN, SAC, TD3
from stable_baselines3.common.buffers import ReplayBuffer
from torch.nn import functional as F  # noqa: N812

from sb3_extra_buffers import prioritized
from sb3_extra_buffers.compressed import CompressedDictPrioritizedReplayBuffer, CompressedPrioritizedReplayBuffer
from sb3_extra_buffers.errors import BufferStateError, ParameterError
from sb3_extra_buffers.prioritized import PrioritizedDQN, PrioritizedReplay, PrioritizedSAC


class Walk(gym.Env):
    """A few steps in a plane, with rewards and ends by themselves and by timeout."""

    def __init__(self, is_discrete, is_dict=False):
        self.is_dict = is_dict
        self.action_space = spaces.Discrete(3) if is_discrete else spaces.Box(-1, 1, (2,), np.float32)
        place = spaces.Box(-10, 10, (2,), np.float32)
        self.observation_space = spaces.Dict({"place": place, "time": spaces.Box(0, 99, (1,), np.float32)})
        if not is_dict:
            self.observation_space = place

    def _observation(self):
        place = self.place.astype(np.float32)
        return {"place": place, "time": np.array([self.now], np.float32)} if self.is_dict else place

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.now = self.np_random.normal(size=2), 0
        return self._observation(), {}

    def step(self, action):
        move = action if isinstance(self.action_space, spaces.Box) else np.array([action - 1.0, 0.5])
        self.place = np.clip(self.place + move, -10, 10)
        self.now += 1
        reward = float(self.place.sum())
        return self._observation(), reward, reward > 4, self.now == 9, {}


SMALL = {"policy_kwargs": {"net_arch": [16]}, "learning_starts": 20, "batch_size": 16, "buffer_size": 60, "seed": 3}
DISCRETE, CONTINUOUS = {"train_freq": 2, "target_update_interval": 20}, {"train_freq": 1}
#: The original and ours, whether actions are discrete, arguments.
ALGORITHMS = {
    "DQN": (True, DISCRETE),
    "QRDQN": (True, {**DISCRETE, "policy_kwargs": {"net_arch": [16], "n_quantiles": 7}}),
    "SAC": (False, CONTINUOUS),
    "TD3": (False, CONTINUOUS),
    "DDPG": (False, CONTINUOUS),
    "TQC": (False, CONTINUOUS),
    "CrossQ": (False, CONTINUOUS),
}


@pytest.fixture(autouse=True)
def _one_thread():
    threads = th.get_num_threads()
    th.set_num_threads(1)
    yield
    th.set_num_threads(threads)


def original(name):
    ours = {"DQN": DQN, "SAC": SAC, "TD3": TD3, "DDPG": DDPG}
    return ours[name] if name in ours else getattr(pytest.importorskip("sb3_contrib"), name)


def make(cls, name, is_dict=False, **arguments):
    is_discrete, own = ALGORITHMS[name]
    policy = "MultiInputPolicy" if is_dict else "MlpPolicy"
    return cls(policy, Walk(is_discrete, is_dict), device="cpu", **copy.deepcopy({**SMALL, **own, **arguments}))


def weights_of(model):
    return {name: value.clone() for name, value in model.policy.state_dict().items()}


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_alpha_0_trains_to_the_weights_of_the_original(name, n_steps):
    is_dict = n_steps > 1 and name != "CrossQ"  # which has no policy for Dict observations
    kind = CompressedDictPrioritizedReplayBuffer if is_dict else CompressedPrioritizedReplayBuffer
    options = {"alpha": 0, "n_steps": n_steps, "gamma": 0.9}
    found = []
    for cls in (original(name), getattr(prioritized, f"Prioritized{name}")):
        model = make(cls, name, is_dict, replay_buffer_class=kind, replay_buffer_kwargs=options)
        before = weights_of(model)
        model.learn(50)
        found.append(weights_of(model))
        assert any(not th.equal(before[key], found[-1][key]) for key in before)
    for key, value in found[0].items():
        assert th.equal(value, found[1][key]), key


@pytest.mark.parametrize("name", ALGORITHMS)
def test_priorities_are_set_and_matter(name):
    original(name)
    model = make(getattr(prioritized, f"Prioritized{name}"), name, replay_buffer_kwargs={"alpha": 1})
    model.learn(60)
    buffer = model.replay_buffer
    assert type(buffer) is CompressedPrioritizedReplayBuffer
    priorities = buffer.priorities()
    assert len(np.unique(priorities)) > 20
    assert buffer.current_beta > 0.9
    uniform = make(getattr(prioritized, f"Prioritized{name}"), name, replay_buffer_kwargs={"alpha": 0})
    uniform.learn(60)
    assert any(not th.equal(one, other) for one, other in zip(weights_of(model).values(), weights_of(uniform).values()))


def test_one_step_of_dqn_has_the_gradient_of_the_weighted_loss_and_the_td_errors():
    model = make(PrioritizedDQN, "DQN", replay_buffer_kwargs={"alpha": 0.8, "beta": 0.7}, learning_starts=1000)
    model.learn(50)
    buffer = model.replay_buffer
    buffer.update_priorities(np.arange(50), np.linspace(0, 30, 50), 1.0)
    before = weights_of(model)
    np.random.seed(0)
    batch = buffer.sample(16)
    assert len(batch.weights.unique()) > 5
    with th.no_grad():
        following = model.q_net_target(batch.next_observations).max(dim=1, keepdim=True).values
        targets = batch.rewards + (1 - batch.dones) * model.gamma * following
    current = model.q_net(batch.observations).gather(1, batch.actions.long())
    loss = (batch.weights * F.smooth_l1_loss(current, targets, reduction="none")).mean()
    model.policy.optimizer.zero_grad()
    loss.backward()
    th.nn.utils.clip_grad_norm_(model.policy.parameters(), model.max_grad_norm)
    expected = [parameter.grad.clone() for parameter in model.q_net.parameters()]
    model.policy.load_state_dict(before)
    np.random.seed(0)
    model.train(gradient_steps=1, batch_size=16)
    for own, parameter in zip(expected, model.q_net.parameters()):
        th.testing.assert_close(parameter.grad, own, rtol=1e-5, atol=1e-7)
    errors = (targets - current.detach()).abs().numpy()[:, 0].astype(np.float64)
    found = buffer.priorities()[batch.leaf_nodes_indices, 0]
    np.testing.assert_allclose(found, (errors + 1e-6) ** 0.8, rtol=1e-5)


def test_td_errors_of_several_critics_are_averaged():
    model = make(PrioritizedSAC, "SAC", replay_buffer_kwargs={"alpha": 1}, learning_starts=1000, ent_coef=0.1)
    model.learn(40)
    seen, update = [], model.replay_buffer.update_priorities
    model.replay_buffer.update_priorities = lambda *given: seen.append(given) or update(*given)
    losses, mse_loss = [], F.mse_loss
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            F, "mse_loss", lambda own, target: losses.append((target - own).abs().detach()) or mse_loss(own, target)
        )
        model.train(gradient_steps=3, batch_size=8)
    assert len(seen) == 3
    assert len(losses) == 6
    for number, (_, errors, progress) in enumerate(seen):
        mean = (losses[2 * number] + losses[2 * number + 1])[:, 0] / 2
        th.testing.assert_close(errors, mean)
        assert progress == model._current_progress_remaining


def test_dict_observations_and_n_steps_get_a_fitting_buffer():
    model = make(PrioritizedDQN, "DQN", is_dict=True, n_steps=3)
    assert type(model.replay_buffer) is CompressedDictPrioritizedReplayBuffer
    assert (model.replay_buffer.n_steps, model.replay_buffer.gamma) == (3, model.gamma)
    model.learn(40)


def test_a_saved_model_and_its_buffer_go_on_like_the_original(tmp_path):
    settings = {"replay_buffer_kwargs": {"alpha": 0.9}, "n_steps": 2}
    model = make(PrioritizedDQN, "DQN", **settings)
    model.learn(60)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "buffer")
    loaded = PrioritizedDQN.load(tmp_path / "model", env=model.get_env(), device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer")
    loaded.set_logger(model.logger)
    results = []
    for one in (model, loaded):
        np.random.seed(0)
        one.train(gradient_steps=5, batch_size=16)
        results.append((weights_of(one), one.replay_buffer.priorities()))
    (weights, priorities), (other_weights, other_priorities) = results
    assert np.array_equal(priorities, other_priorities)
    assert all(th.equal(value, other_weights[key]) for key, value in weights.items())


def test_buffers_without_priorities_are_refused():
    with pytest.raises(ParameterError, match="PrioritizedDQN: replay_buffer_class='ReplayBuffer'"):
        make(PrioritizedDQN, "DQN", replay_buffer_class=ReplayBuffer)
    model = make(PrioritizedDQN, "DQN")
    model.replay_buffer = ReplayBuffer(10, model.observation_space, model.action_space)
    with pytest.raises(BufferStateError, match="ReplayBuffer has no priorities"):
        model.train(1, 4)


class Quiet(DQN):
    """Trains without a loss that can be found."""

    def train(self, gradient_steps, batch_size=100):
        self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)


class Doubled(DQN):
    """An algorithm of somebody, with double Q-learning."""

    def train(self, gradient_steps, batch_size=100):
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size, env=self._vec_normalize_env)
            with th.no_grad():
                actions = self.q_net(batch.next_observations).argmax(dim=1, keepdim=True)
                following = self.q_net_target(batch.next_observations).gather(1, actions)
                targets = batch.rewards + (1 - batch.dones) * self.gamma * following
            current = self.q_net(batch.observations).gather(1, batch.actions.long())
            loss = F.huber_loss(current, targets)
            self.policy.optimizer.zero_grad()
            loss.backward()
            self.policy.optimizer.step()


def test_an_algorithm_of_somebody_can_be_mixed_in():
    class Ours(PrioritizedReplay, Doubled):
        pass

    model = make(Ours, "DQN")
    model.learn(60)
    assert len(np.unique(model.replay_buffer.priorities())) > 20


def test_training_without_a_known_loss_is_an_error():
    class Ours(PrioritizedReplay, Quiet):
        pass

    model = make(Ours, "DQN", learning_starts=10)
    with pytest.raises(BufferStateError, match="no loss that can be weighted"):
        model.learn(30)
    assert type(model.replay_buffer) is CompressedPrioritizedReplayBuffer


def test_an_interrupted_training_leaves_the_buffer_and_no_priority_of_the_last_batch():
    model = make(PrioritizedDQN, "DQN", learning_starts=1000)
    model.learn(40)
    buffer, before = model.replay_buffer, model.replay_buffer.priorities()

    def interrupt():
        raise KeyboardInterrupt

    model.policy.optimizer.step = interrupt
    with pytest.raises(KeyboardInterrupt):
        model.train(gradient_steps=3, batch_size=8)
    assert model.replay_buffer is buffer
    assert np.array_equal(buffer.priorities(), before)
    assert DQN.train.__globals__["F"] is F


def test_models_in_several_threads_do_not_disturb_each_other():
    extra = {"DQN": {}, "TD3": {"target_policy_noise": 0.0}}

    def new(name):
        model = make(getattr(prioritized, f"Prioritized{name}"), name, learning_starts=1000, **extra[name])
        model.learn(40)
        return model

    # Threads share the global generators, so batches are drawn before.
    batches = {name: [new(name).replay_buffer.sample(16) for _ in range(20)] for name in extra}

    def prepared(name):
        model, given, errors = new(name), iter(batches[name]), []
        model.replay_buffer = SimpleNamespace(
            sample=lambda *_args, **_kwargs: next(given),
            update_priorities=lambda _numbers, found, _progress: errors.append(found),
        )
        return model, errors

    alone, together = ({name: prepared(name) for name in extra} for _ in range(2))
    for model, _ in alone.values():
        model.train(gradient_steps=20, batch_size=16)
    threads = [threading.Thread(target=model.train, args=(20, 16)) for model, _ in together.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in extra:
        found = [th.stack(errors) for _, errors in (alone[name], together[name])]
        assert found[0].shape == (20, 16)
        assert th.equal(*found)


def test_a_buffer_that_is_saved_during_training_is_the_buffer(tmp_path):
    model = make(PrioritizedDQN, "DQN", learning_starts=1000)
    model.learn(30)
    step = model.policy.optimizer.step

    def save_and_step():
        assert model.replay_buffer.size() == 30
        model.save_replay_buffer(tmp_path / "buffer")
        return step()

    model.policy.optimizer.step = save_and_step
    before = model.replay_buffer.priorities()
    model.train(gradient_steps=1, batch_size=8)
    after = model.replay_buffer.priorities()
    model.load_replay_buffer(tmp_path / "buffer")
    assert type(model.replay_buffer) is CompressedPrioritizedReplayBuffer
    assert np.array_equal(model.replay_buffer.priorities(), before)
    assert not np.array_equal(after, before)


def test_unknown_names_are_no_attributes():
    with pytest.raises(AttributeError, match="PrioritizedPPO"):
        prioritized.PrioritizedPPO  # noqa: B018
    assert set(prioritized.__all__) <= set(dir(prioritized))

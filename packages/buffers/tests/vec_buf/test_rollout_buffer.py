"""``DummyVecRolloutBuffer``: one stream, several buffers, and a model that learns as with one."""

import copy
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer
from stable_baselines3.common.envs import SimpleMultiObsEnv

from sb3_extra_buffers.compressed import CompressedDictRolloutBuffer, CompressedRolloutBuffer
from sb3_extra_buffers.errors import BufferStateError, ParameterError
from sb3_extra_buffers.vec_buf import DummyVecRolloutBuffer

SPACE, ACTION = spaces.Box(0, 255, (4, 12, 12), np.uint8), spaces.Discrete(3)
COMPRESSED = partial(CompressedRolloutBuffer, compression_method="rle")
STEPS, ENVS = 6, 2


def fill(buffer, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(STEPS):
        image = rng.integers(0, 4, (ENVS, *SPACE.shape), dtype=np.uint8) // 3
        step = [rng.integers(0, 3, (ENVS, 1)), rng.normal(size=ENVS), rng.integers(0, 2, ENVS)]
        buffer.add(image, *step, th.as_tensor(rng.normal(size=ENVS)), th.as_tensor(rng.normal(size=ENVS)))
    buffer.compute_returns_and_advantage(last_values=th.ones(ENVS, 1), dones=np.array([True, False]))


def batches(buffer):
    np.random.seed(4)
    return [[part.numpy() for part in batch if part is not None] for batch in buffer.get(5)]


def assert_equal(ours, theirs):
    assert len(ours) == len(theirs) == 3
    for own, other in zip(ours, theirs):
        assert [part.tobytes() for part in own] == [part.tobytes() for part in other]


def new(**kwargs):
    return DummyVecRolloutBuffer(STEPS, SPACE, ACTION, "cpu", n_envs=ENVS, **kwargs)


def plain():
    return RolloutBuffer(STEPS, SPACE, ACTION, "cpu", n_envs=ENVS, gae_lambda=0.9, gamma=0.8)


@pytest.mark.parametrize("use_threads", [False, True])
def test_every_buffer_gets_the_same_and_returns_the_same(use_threads):
    buffer = new(use_threads=use_threads, buffers=[RolloutBuffer, COMPRESSED, plain()], gae_lambda=0.9, gamma=0.8)
    alone = plain()
    for seed in (0, 1):
        buffer.reset()
        alone.reset()
        fill(buffer, seed)
        fill(alone, seed)
        assert buffer.full
        assert np.array_equal(buffer.advantages, alone.advantages)
        expected = batches(alone)
        assert_equal(batches(buffer), expected)
        for part in buffer.buffers:
            assert_equal(batches(part), expected)


def test_arguments_mean_what_they_say():
    # B13: the published class took the number of environments for gae_lambda.
    buffer = new(buffers=[RolloutBuffer, COMPRESSED], gae_lambda=0.7, gamma=0.6)
    for one in (buffer, *buffer.buffers):
        assert (one.n_envs, one.buffer_size, one.gae_lambda, one.gamma) == (ENVS, STEPS, 0.7, 0.6)


@pytest.mark.parametrize("use_threads", [False, True])
def test_without_buffers_there_is_one_of_stable_baselines3(use_threads):
    buffer = new(use_threads=use_threads, gae_lambda=0.9, gamma=0.8)  # B13: with threads, this was a TypeError
    assert [type(part) for part in buffer.buffers] == [RolloutBuffer]
    alone = plain()
    fill(buffer)
    fill(alone)
    assert_equal(batches(buffer), batches(alone))


def test_it_allocates_no_observations_of_its_own():
    buffer = new(buffers=[COMPRESSED])
    assert "observations" not in vars(buffer)
    assert buffer.observations is buffer.buffers[0].observations


def test_it_counts_with_its_buffers():
    buffer = new(buffers=[RolloutBuffer, COMPRESSED])
    assert (buffer.pos, buffer.full, buffer.size()) == (0, False, 0)
    with pytest.raises(AttributeError):
        _ = buffer.no_such_thing
    fill(buffer)
    assert (buffer.pos, buffer.full, buffer.size()) == (STEPS, True, STEPS)
    assert not buffer.generator_ready
    batches(buffer)
    assert buffer.generator_ready


@pytest.mark.parametrize("algorithm", [PPO, A2C])
@pytest.mark.parametrize("use_threads", [False, True])
def test_a_model_learns_the_same_as_with_one_buffer(algorithm, use_threads):
    # B13: the published class could not be used like this.
    def trained(**kwargs):
        model = algorithm("MlpPolicy", "CartPole-v1", n_steps=64, seed=2, device="cpu", **kwargs)
        model.n_epochs = 1  # of PPO; ten take their time
        return model.learn(128)

    several = {"buffers": [CompressedRolloutBuffer, RolloutBuffer], "use_threads": use_threads}
    ours = trained(rollout_buffer_class=DummyVecRolloutBuffer, rollout_buffer_kwargs=several)
    theirs = trained()
    for own, other in zip(ours.policy.state_dict().values(), theirs.policy.state_dict().values()):
        assert th.equal(own, other)
    first, second = ours.rollout_buffer.buffers
    assert np.array_equal(first.rewards, second.rewards)


def test_dict_observations_pass_through(tmp_path):
    kwargs = {"buffers": [DictRolloutBuffer, CompressedDictRolloutBuffer]}
    model = PPO(
        "MultiInputPolicy",
        SimpleMultiObsEnv(random_start=False),
        n_steps=16,
        batch_size=16,
        n_epochs=1,
        device="cpu",
        rollout_buffer_class=DummyVecRolloutBuffer,
        rollout_buffer_kwargs=kwargs,
    ).learn(16)
    found = []
    for part in model.rollout_buffer.buffers:
        np.random.seed(4)
        found.append(next(part.get()).observations)
    assert list(found[0]) == list(found[1]) == ["img", "vec"]
    for key, tensor in found[0].items():
        assert th.equal(tensor, found[1][key])
        assert tensor.any()
    model.save(tmp_path / "model")
    assert isinstance(PPO.load(tmp_path / "model").rollout_buffer, DummyVecRolloutBuffer)


@pytest.mark.parametrize("use_threads", [False, True])
@pytest.mark.parametrize("through", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))], ids=["copy", "pickle"])
def test_it_can_be_copied_and_saved(through, use_threads):
    buffer = new(use_threads=use_threads, buffers=[RolloutBuffer, COMPRESSED])
    fill(buffer)
    other = through(buffer)
    assert_equal(batches(other), batches(buffer))
    other.reset()
    assert buffer.full
    fill(other, seed=7)


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        ([], "buffers=.*at least one"),
        ([RolloutBuffer(5, SPACE, ACTION, "cpu", n_envs=ENVS)], "5 steps for 2 environments.*must have 6 steps for 2"),
        ([RolloutBuffer(6, SPACE, ACTION, "cpu")], "6 steps for 1 environments.*must have 6 steps for 2"),
    ],
)
def test_buffers_that_do_not_fit_are_refused(buffers, message):
    with pytest.raises(ParameterError, match=message):
        new(buffers=buffers)


@pytest.mark.parametrize("use_threads", [False, True])
def test_what_one_buffer_refuses_is_not_swallowed(use_threads):
    buffer = new(use_threads=use_threads, buffers=[COMPRESSED, COMPRESSED])
    fill(buffer)
    with pytest.raises(BufferStateError, match="the rollout is complete"):
        fill(buffer)


def test_it_comes_and_goes_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        buffer = new(buffers=[RolloutBuffer], use_threads=True)
        del buffer
    assert not hasattr(DummyVecRolloutBuffer, "__del__")  # B13: the published one raised there

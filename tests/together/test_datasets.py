"""Data sets go in and out of compressed buffers, checkpoints and pickles, bit by bit."""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.save_util import save_to_pkl

from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedNStepReplayBuffer,
    CompressedReplayBuffer,
)
from sb3_extra_buffers.datasets import export_dataset, import_dataset
from sb3_extra_buffers.errors import ExtraBuffersError

STACK = spaces.Box(0, 255, (4, 36, 36), np.uint8)
KINDS = {
    "stack": (STACK, ReplayBuffer, CompressedReplayBuffer),
    "dict": (
        spaces.Dict({"image": STACK, "vec": spaces.Box(-1, 1, (4,), np.float32)}),
        DictReplayBuffer,
        CompressedDictReplayBuffer,
    ),
}
ACTIONS = spaces.Discrete(5)
STEPS = 150


def play(buffer, steps=STEPS):
    """Add stacks of a moving image; some episodes are terminated, some truncated."""
    random = np.random.default_rng(5)
    frames = random.integers(0, 200, (steps + 5, 36, 36)).astype(np.uint8)
    frames[1:, :30] = frames[0, :30]

    def observe(step):
        stack = frames[step : step + 4][np.newaxis]
        if not isinstance(buffer.observation_space, spaces.Dict):
            return stack
        return {"image": stack, "vec": np.full((1, 4), step / 200, np.float32)}

    for step in range(steps):
        done = step % 23 == 22
        infos = [{"TimeLimit.truncated": True} if done and step % 2 else {}]
        action, reward = np.array([[step % 5]]), np.array([step / 7], np.float32)
        buffer.add(observe(step), observe(step + 1), action, reward, np.array([done]), infos)
    return buffer


def content(buffer, steps=STEPS):
    def rows(name):
        part = getattr(buffer, name)
        return {key: np.asarray(one[:steps]) for key, one in part.items()} if isinstance(part, dict) else part[:steps]

    found = {name: rows(name) for name in ("observations", "next_observations", "actions", "rewards", "dones")}
    return {**found, "timeouts": buffer.timeouts[:steps]}


def assert_same(ours, theirs):
    for name, expected in content(theirs).items():
        np.testing.assert_equal(content(ours)[name], expected, err_msg=name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", ["data.npz", "data.parquet", "hf:folder"])
def test_a_compressed_buffer_is_exported_and_imported_bit_by_bit(kind, target, tmp_path):
    space, plain, compressed = KINDS[kind]
    scheme, _, name = target.rpartition(":")
    path = tmp_path / name
    written = export_dataset(play(compressed(200, space, ACTIONS, "cpu")), f"{scheme}:{path}" if scheme else path)
    theirs = plain(200, space, ACTIONS, "cpu")
    assert import_dataset(written, theirs).transitions == STEPS
    assert_same(theirs, play(plain(200, space, ACTIONS, "cpu")))
    ours = compressed(200, space, ACTIONS, "cpu")
    import_dataset(written, ours)
    assert_same(ours, theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_is_a_source(kind, tmp_path):
    space, plain, compressed = KINDS[kind]
    play(compressed(200, space, ACTIONS, "cpu")).save(tmp_path / "checkpoint")
    target = plain(200, space, ACTIONS, "cpu")
    import_dataset(tmp_path / "checkpoint", target)
    assert_same(target, play(plain(200, space, ACTIONS, "cpu")))


def test_a_pickle_is_a_source_if_it_is_trusted(tmp_path):
    path, target = tmp_path / "buffer.pkl", CompressedReplayBuffer(200, STACK, ACTIONS, "cpu")
    original = play(ReplayBuffer(200, STACK, ACTIONS, "cpu"))
    save_to_pkl(path, original)
    with pytest.raises(ExtraBuffersError, match="trust_pickle"):
        import_dataset(path, target)
    assert target.size() == 0
    import_dataset(path, target, trust_pickle=True)
    assert_same(target, original)


def as_array(value):
    return value if value is None else value.numpy()


def test_n_step_returns_of_imported_transitions_are_those_of_the_original(tmp_path):
    settings = {"n_steps": 3, "gamma": 0.9}
    original = play(CompressedNStepReplayBuffer(200, STACK, ACTIONS, "cpu", **settings))
    target = CompressedNStepReplayBuffer(200, STACK, ACTIONS, "cpu", **settings)
    import_dataset(export_dataset(original, tmp_path / "data.npz"), target)
    samples = []
    for buffer in (original, target):
        np.random.seed(3)
        samples.append(buffer.sample(64))
    for name, expected in samples[0]._asdict().items():
        np.testing.assert_equal(as_array(getattr(samples[1], name)), as_array(expected), err_msg=name)

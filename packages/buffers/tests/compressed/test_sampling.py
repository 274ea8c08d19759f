"""Rows that are asked for by number, and subclasses that make batches of their own."""

import numpy as np
import pytest
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer

from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.errors import ParameterError

SPACE, ACTIONS = spaces.Box(0, 255, (2, 32, 32), np.uint8), spaces.Discrete(5)
LAYOUTS = pytest.mark.parametrize("layout", ["cells", "frames"])


class Halved(CompressedReplayBuffer):
    """Somebody's buffer, with batches of half the size."""

    def _get_samples(self, batch_inds, env=None):
        return super()._get_samples(batch_inds[::2], env)


def filled(kind, **arguments):
    """A buffer of 12 rows of three environments, written to one and a half times."""
    buffer, rng = kind(36, SPACE, ACTIONS, device="cpu", n_envs=3, **arguments), np.random.default_rng(0)
    images = rng.integers(0, 256, (19, 3, *SPACE.shape)).astype(np.uint8)
    for step in range(18):
        infos = [{"TimeLimit.truncated": bool(flag)} for flag in rng.integers(0, 2, 3)]
        rest = rng.integers(0, 5, (3, 1)), rng.random(3), rng.integers(0, 2, 3), infos
        buffer.add(images[step], images[step + 1], *rest)
    return buffer


def same(ours, theirs):
    for own, other in zip(ours, theirs):
        assert (own is None) == (other is None)
        if own is not None:
            np.testing.assert_array_equal(own.numpy(), other.numpy())
            assert own.dtype == other.dtype


@LAYOUTS
@pytest.mark.parametrize("rows", [[0, 11, 5, 5], [-1, -12, 3], [], [7]])
def test_rows_are_counted_as_in_every_array(layout, rows):
    batches = []
    for buffer in (filled(CompressedReplayBuffer, layout=layout), filled(ReplayBuffer)):
        np.random.seed(0)
        batches.append(buffer._get_samples(np.array(rows, np.int64)))
    same(*batches)


@LAYOUTS
@pytest.mark.parametrize("rows", [[12], [0, -13], [1 << 40]])
def test_rows_that_do_not_exist_are_an_error(layout, rows):
    with pytest.raises(IndexError):
        filled(CompressedReplayBuffer, layout=layout)._get_samples(np.array(rows))


@LAYOUTS
def test_a_batch_that_is_kept_is_not_overwritten_by_those_that_follow(layout):
    ours, theirs = filled(CompressedReplayBuffer, layout=layout), filled(ReplayBuffer)
    np.random.seed(0)
    kept = [ours.sample(64) for _ in range(6)]
    np.random.seed(0)
    for batch in kept:
        same(batch, theirs.sample(64))


@LAYOUTS
def test_a_subclass_with_batches_of_its_own_is_asked_for_them(layout):
    ours, theirs = filled(Halved, layout=layout), filled(ReplayBuffer)
    np.random.seed(0)
    batch = ours.sample(8)
    np.random.seed(0)
    rows = np.random.randint(0, 12, size=8)
    same(batch, theirs._get_samples(rows[::2]))


def test_a_subclass_with_batches_of_its_own_cannot_prefetch():
    with pytest.raises(ParameterError, match=r"Halved has a _get_samples\(\) of its own"):
        Halved(10, SPACE, ACTIONS, prefetch=True)

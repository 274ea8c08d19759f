"""What environments hand to a buffer, and a comparison that misses no bit."""

import numpy as np
import torch as th
from gymnasium import spaces

ACTIONS = spaces.Discrete(4)
#: Every kind of observation that Stable-Baselines3 knows, and every size of element.
SPACES = {
    "image": spaces.Box(0, 255, (4, 12, 12), np.uint8),
    "large": spaces.Box(0, 255, (1, 70, 70), np.uint8),  # these wait until there are enough for a batch
    "channel-last": spaces.Box(0, 255, (12, 12, 3), np.uint8),
    "vector": spaces.Box(-np.inf, np.inf, (7,), np.float32),
    "float64": spaces.Box(-1e300, 1e300, (3, 5), np.float64),
    "float16": spaces.Box(-100, 100, (33,), np.float16),
    "int16": spaces.Box(-3000, 3000, (5, 3), np.int16),
    "uint16": spaces.Box(0, 60000, (9,), np.uint16),
    "int64": spaces.Box(-(2**40), 2**40, (4,), np.int64),
    "one": spaces.Box(0, 255, (1,), np.uint8),
    "discrete": spaces.Discrete(500),
    "multi-binary": spaces.MultiBinary(11),
    "multi-discrete": spaces.MultiDiscrete([3, 300, 5]),
}


class Player:
    """Plays at random: noisy frames, still ones, and some that grow and shrink when they are compressed.

    :param space: of the observations
    :param n_envs: how many environments
    :param seed: of all that is random
    """

    def __init__(self, space, n_envs, seed=0):
        self.space, self.n_envs, self.random = space, n_envs, np.random.default_rng(seed)
        self.last = self._observe()

    def _observe(self):
        if isinstance(self.space, spaces.Dict):
            return {key: self._one(part) for key, part in self.space.items()}
        return self._one(self.space)

    def _one(self, space):
        shape = (self.n_envs, *getattr(space, "shape", ()))
        kind = self.random.integers(3)
        if isinstance(space, spaces.Discrete):
            return self.random.integers(space.n, size=(self.n_envs,))
        if isinstance(space, spaces.MultiDiscrete):
            return self.random.integers(space.nvec, size=shape)
        if isinstance(space, spaces.MultiBinary):
            return self.random.integers(2, size=shape).astype(np.int8)
        if np.dtype(space.dtype).kind == "f":
            found = self.random.normal(size=shape).astype(space.dtype)
            return np.where(self.random.random(shape) < 0.1, -0.0, found).astype(space.dtype)
        high = (2, 40, int(space.high.flat[0]))[kind]
        return self.random.integers(0, high, shape).astype(space.dtype)

    def step(self):
        """What ``ReplayBuffer.add`` takes. Where an episode ends, another observation follows than the next one."""
        obs, following, done = self.last, self._observe(), self.random.random(self.n_envs) < 0.15
        self.last = self._observe() if done.any() else following
        infos = [{"TimeLimit.truncated": bool(flag)} for flag in self.random.random(self.n_envs) < 0.05]
        return obs, following, self.random.integers(4, size=self.n_envs), self.random.random(self.n_envs), done, infos

    def rollout_step(self):
        """What ``RolloutBuffer.add`` takes."""
        obs, _, action, reward, done, _ = self.step()
        value, log_prob = (th.from_numpy(self.random.random(self.n_envs)).float() for _ in range(2))
        return obs, action, reward, done, value, log_prob


def expect_equal(found, expected):
    """Batches are bit-equal, with all their dtypes."""
    assert type(found).__name__ == type(expected).__name__
    for name, part, other in zip(expected._fields, found, expected):
        for key in other if isinstance(other, dict) else [None]:
            ours, theirs = (part, other) if key is None else (part[key], other[key])
            if theirs is None:
                assert ours is None
                continue
            assert ours.dtype == theirs.dtype, (name, key)
            assert ours.shape == theirs.shape, (name, key)
            assert ours.numpy().tobytes() == theirs.numpy().tobytes(), (name, key)

"""Environments whose observations are stacks of frames, and pairs of buffers for them: ours and the original."""

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer, RolloutBuffer

from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedNStepReplayBuffer,
    CompressedReplayBuffer,
)

ACTIONS = spaces.Discrete(3)
#: Shape of a frame, and where frames are stacked.
STACKS = {
    "gray first": ((20, 18), 4, 0),
    "gray last": ((20, 18), 4, -1),
    "colour first": ((3, 12, 10), 4, 0),
    "colour last": ((12, 10, 3), 3, -1),
    "deep": ((16, 16), 7, 0),
    "not stacked": ((24, 22, 3), 1, 0),
}
EVENTS = ("shift", "zeros", "repeat", "junk", "still", "end")


class Scene:
    """Environments whose observations are stacks of frames, and now and then are not."""

    def __init__(self, stack, n_envs, seed):
        frame, self.depth, self.axis = STACKS[stack]
        self.rng = np.random.default_rng(seed)
        self.frames = self.rng.integers(0, 9, (n_envs, *frame)).astype(np.uint8)
        self.stacks = [[np.zeros(frame, np.uint8)] * self.depth for _ in range(n_envs)]
        for env in range(n_envs):
            self.reset(env, "zeros")
        shape = self.observe().shape[1:]
        self.space = spaces.Box(0, 255, shape, np.uint8)

    def observe(self):
        found = []
        for own in self.stacks:
            if self.depth == 1:
                found.append(own[0])
            elif own[0].ndim == 2:
                found.append(np.stack(own, axis=self.axis))
            else:
                found.append(np.concatenate(own, axis=self.axis))
        return np.array(found)

    def move(self, env):
        frame = self.frames[env].copy()
        for _ in range(3):
            row, column = self.rng.integers(0, frame.shape[0]), self.rng.integers(0, frame.shape[1])
            frame[row, column : column + 3] = self.rng.integers(0, 256)
        self.frames[env] = frame
        return frame

    def reset(self, env, how):
        first = self.move(env)
        blank = np.zeros_like(first) if how == "zeros" else first
        self.stacks[env] = [*[blank] * (self.depth - 1), first]

    def step(self, env, event):
        """Go on in one environment; True if what follows begins a new episode."""
        own = self.stacks[env]
        if event == "junk":
            self.stacks[env] = [self.rng.integers(0, 256, frame.shape).astype(np.uint8) for frame in own]
        elif event != "still":
            self.stacks[env] = [*own[1:], self.move(env)]
        return event in ("zeros", "repeat", "end")


def add(buffers, scene, events, number):
    """A step of every environment in every buffer."""
    obs, n_envs = scene.observe(), len(scene.stacks)
    done = np.array([scene.step(env, events[env]) for env in range(n_envs)])
    next_obs = scene.observe()
    for env in np.flatnonzero(done).tolist():
        scene.reset(env, events[env])
    infos = [{"TimeLimit.truncated": bool(done[env]) and events[env] == "end"} for env in range(n_envs)]
    reward, action = np.arange(n_envs, dtype=np.float32) + number, np.full((n_envs, 1), number % 3)
    for buffer in buffers:
        if isinstance(buffer, RolloutBuffer):
            buffer.add(obs, action, reward, done, th.arange(n_envs) * 1.0, th.arange(n_envs) * 2.0)
        elif isinstance(buffer, DictReplayBuffer):
            parts = [{"image": image, "number": np.full((n_envs, 2), number, np.float32)} for image in (obs, next_obs)]
            buffer.add(*parts, action, reward, done, infos)
        else:
            buffer.add(obs, next_obs, action, reward, done, infos)


KINDS = {
    "plain": (ReplayBuffer, CompressedReplayBuffer, {}),
    "one array": (
        ReplayBuffer,
        CompressedReplayBuffer,
        {"optimize_memory_usage": True, "handle_timeout_termination": False},
    ),
    "n-step": (NStepReplayBuffer, CompressedNStepReplayBuffer, {"n_steps": 3}),
    "dict": (DictReplayBuffer, CompressedDictReplayBuffer, {}),
}


def make(kind, scene, rows, n_envs, **storage):
    theirs, ours, both = KINDS[kind]
    number = spaces.Box(-np.inf, np.inf, (2,), np.float32)
    space = spaces.Dict(image=scene.space, number=number) if kind == "dict" else scene.space
    return [
        part(rows * n_envs, space, ACTIONS, device="cpu", n_envs=n_envs, **both, **more)
        for part, more in ((ours, storage), (theirs, {}))
    ]


def arrays(buffer):
    found = {}
    for name in ("observations", "next_observations"):
        part = getattr(buffer, name, None)
        if part is not None:
            found.update(
                {
                    f"{name} {key}": np.asarray(array)
                    for key, array in (part.items() if isinstance(part, dict) else [("", part)])
                }
            )
    return found


def expect_same_arrays(ours, theirs):
    expected = arrays(theirs)
    for name, array in arrays(ours).items():
        np.testing.assert_array_equal(array, expected[name], name)


def bits(batch):
    """Every field of a batch, bit by bit."""
    found = {}
    for name, value in batch._asdict().items():
        for key, part in value.items() if isinstance(value, dict) else [("", value)]:
            if part is not None:
                found[name, key] = (str(part.dtype), tuple(part.shape), part.numpy().tobytes())
    return found


def sampled(buffer, seed):
    """A batch that is drawn with this seed, bit by bit."""
    np.random.seed(seed)
    return bits(buffer.sample(30))

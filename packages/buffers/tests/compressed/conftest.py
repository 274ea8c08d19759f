"""What the tests of the buffers share: steps as environments make them, and a comparison that misses no bit."""

import copy
import os
import struct
import zlib

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_extra_buffers import codecs

SCRIBBLE = 85


@pytest.fixture
def no_waiting(monkeypatch):
    """Do not wait for the disk: what is in the files is tested, not whether they survive a loss of power."""
    monkeypatch.setattr(os, "fsync", lambda number: None)


@pytest.fixture(params=[*codecs.names(), "auto"])
def codec(request):
    """Every codec that is installed, and the automatic choice."""
    return request.param


def _screen(side=12):
    """Images of 576 bytes, which are compressed as they come, or with a side of 32 of 4096, which wait for others."""
    return spaces.Box(0, 255, (4, side, side), np.uint8)


@pytest.fixture
def screen():
    return _screen


@pytest.fixture
def composite():
    """A space with cells that are compressed, and cells of fewer than 256 bytes, which are not."""

    def composite(side=12):
        return spaces.Dict(
            {
                "scan": spaces.Box(-10, 10, (80,), np.float32),
                "image": _screen(side),
                "position": spaces.Box(-1, 1, (3,), np.float64),
                "lamp": spaces.Discrete(5),
            }
        )

    return composite


def _same(ours, theirs, where="it"):
    assert type(ours) is type(theirs), f"{where} is a {type(ours)}, not a {type(theirs)}"
    if isinstance(ours, dict):
        assert list(ours) == list(theirs), where
        for key in ours:
            _same(ours[key], theirs[key], f"{where}[{key!r}]")
    elif isinstance(ours, (tuple, list)):
        names = getattr(ours, "_fields", range(len(theirs)))
        assert len(ours) == len(theirs), where
        for name, own, other in zip(names, ours, theirs):
            _same(own, other, f"{where}.{name}")
    elif isinstance(ours, th.Tensor):
        assert (ours.device, ours.requires_grad) == (theirs.device, theirs.requires_grad), where
        assert ours.is_contiguous() == theirs.is_contiguous(), where
        _same(ours.detach().cpu().numpy(), theirs.detach().cpu().numpy(), where)
    elif isinstance(ours, np.ndarray):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), where
        # Bytes, so that every NaN counts, and the sign of zero.
        own, other = (np.frombuffer(array.tobytes(), np.uint8) for array in (ours, theirs))
        assert not (own != other).any(), f"{where} differs in {(own != other).sum()} of {len(own)} bytes"
    else:
        assert ours == theirs, where


@pytest.fixture
def same():
    """Check that two results are equal in every field, key, type, dtype, shape, device and bit."""
    return _same


#: Values of environment variables that mean yes.
_YES = ("1", "true", "yes", "on")
#: Files that this process has saved.
_saved = set()


def _save_images(observations, path, environ=os.environ):
    """Save a few images of a batch, a row for each and a column for each channel, unless the environment says no."""
    names = ("CI", "DISABLE_TEST_OBSERVATIONS_SAVE")
    parts = list(observations.values()) if isinstance(observations, dict) else [observations]
    images = [part[:8].cpu().numpy() for part in parts if part.dtype == th.uint8 and part.ndim == 4]
    if not images or path in _saved or any(environ.get(name, "").lower() in _YES for name in names):
        return
    _saved.add(path)
    count, channels, height, width = images[0].shape
    pixels = images[0].transpose(0, 2, 1, 3).reshape(count * height, channels * width)
    pixels = (pixels * (255 / max(pixels.max(), 1))).astype(np.uint8)  # many tests use few shades
    rows = np.concatenate([np.zeros((len(pixels), 1), np.uint8), pixels], axis=1)
    header = struct.pack(">IIBBBBB", pixels.shape[1], len(pixels), 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")]
    path.parent.mkdir(parents=True, exist_ok=True)
    own = path.with_suffix(f".{os.getpid()}")  # of several processes, the last one wins
    own.write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + b"".join(
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
            for kind, data in chunks
        )
    )
    own.replace(path)


@pytest.fixture
def save_images():
    return _save_images


@pytest.fixture
def same_samples(request):
    """Check that two buffers return the same for the same seed, and that what they return shares no memory.

    A few images of each test are saved in ``debug_obs``, for people to look at.
    """
    name = f"{request.node.path.stem}-{request.node.originalname}.png"

    def check(ours, theirs, batch_size, seed=0, env=None):
        for _ in range(2):
            found = []
            for buffer in (ours, theirs):
                np.random.seed(seed)
                found.append((buffer.sample(batch_size, env=env), np.random.random()))
            _same(*found)
            _save_images(found[0][0].observations, request.config.rootpath / "debug_obs" / name)
            _scribble(found[0][0])

    return check


def _scribble(value):
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    for part in parts:
        _scribble(part)
    if isinstance(value, th.Tensor):
        value.fill_(SCRIBBLE % 2 if value.dtype == th.bool else SCRIBBLE)
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value.fill(SCRIBBLE)


@pytest.fixture
def scribble():
    """Write over arrays and tensors, as who got them may."""
    return _scribble


def _draw(space, rng, count):
    """Observations with runs in them, one for each environment."""
    if isinstance(space, spaces.Dict):
        return {key: _draw(part, rng, count) for key, part in space.items()}
    if isinstance(space, spaces.Discrete):
        return space.start + rng.integers(0, space.n, count, dtype=space.dtype)
    if isinstance(space, spaces.MultiDiscrete):
        return rng.integers(0, space.nvec, (count, *space.shape), dtype=space.dtype)
    size = int(np.prod(space.shape))
    blocks = rng.integers(0, 4, (count, size // 8 + 1)).repeat(8, axis=1)[:, :size].reshape(count, *space.shape)
    if space.dtype.kind in "fi" and not isinstance(space, spaces.MultiBinary):
        blocks = blocks - 1.5 if space.dtype.kind == "f" else blocks - 2
    return (blocks % 2 if isinstance(space, spaces.MultiBinary) else blocks).astype(space.dtype)


def _noise(space, rng, count):
    """Observations that no codec makes smaller, floats of every kind among them."""
    if isinstance(space, spaces.Dict):
        return {key: _noise(part, rng, count) for key, part in space.items()}
    if not isinstance(space, spaces.Box):
        return _draw(space, rng, count)
    size = count * int(np.prod(space.shape)) * space.dtype.itemsize
    return np.frombuffer(rng.bytes(size), space.dtype).reshape(count, *space.shape)


@pytest.fixture
def draw():
    return _draw


@pytest.fixture
def noise():
    return _noise


def _pick(mask, yes, no):
    if isinstance(yes, dict):
        return {key: _pick(mask, yes[key], no[key]) for key in yes}
    return np.where(mask.reshape(-1, *[1] * (yes.ndim - 1)), yes, no)


@pytest.fixture
def walk():
    """Steps of environments: episodes end, by themselves or by timeout, at another observation than the next begins."""

    def walk(observation_space, action_space, n_envs, count, seed=0, draw=_draw, ends=lambda number: 0.25):
        rng = np.random.default_rng(seed)
        obs = draw(observation_space, rng, n_envs)
        for number in range(count):
            stays = rng.random(n_envs) < 0.2
            next_obs = _pick(stays, obs, draw(observation_space, rng, n_envs))
            done = rng.random(n_envs) < ends(number)
            infos = [{"number": number} for _ in done]
            for env in np.flatnonzero(done):
                infos[env]["TimeLimit.truncated"] = bool(rng.random() < 0.5)
            action = _draw(action_space, rng, n_envs)
            reward = rng.normal(size=n_envs).astype(np.float32)
            yield obs, next_obs, action, reward, done, infos
            obs = _pick(done, draw(observation_space, rng, n_envs), next_obs)

    return walk


@pytest.fixture
def single():
    """One of many observations, in arrays or tensors."""

    def single(value, place):
        if isinstance(value, dict):
            return {key: single(part, place) for key, part in value.items()}
        return np.atleast_1d(np.asarray(value[place]))

    return single


@pytest.fixture
def feed():
    """Add a step to several buffers, and write over what was handed in, as environments that reuse arrays do."""

    def feed(step, *buffers):
        for buffer in buffers:
            given = copy.deepcopy(step)
            buffer.add(*given)
            _scribble(given)

    return feed


class _Idle(gym.Env):
    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space

    def compute_reward(self, achieved_goal, desired_goal, infos):
        # Depends on everything that it is given, so that nothing can be mixed up unnoticed.
        numbers = np.array([info.get("number", 0.5) for info in infos])
        return achieved_goal.sum(axis=1) - 3 * desired_goal.sum(axis=1) + numbers / 8


@pytest.fixture
def idle():
    """Environments that nobody steps, for what buffers want from them."""

    def idle(observation_space, action_space, n_envs):
        return DummyVecEnv([lambda: _Idle(observation_space, action_space)] * n_envs)

    return idle


@pytest.fixture
def normalizer(idle):
    """A ``VecNormalize`` that has seen enough to change every observation and reward."""

    def normalizer(observation_space, action_space, n_envs, keys=None):
        # VecNormalize changes the space that it is given.
        env = VecNormalize(idle(copy.deepcopy(observation_space), action_space, n_envs), norm_obs_keys=keys)
        rng = np.random.default_rng(5)
        seen = _draw(observation_space, rng, 50)
        for key in keys or [None]:
            stats = env.obs_rms if key is None else env.obs_rms[key]
            stats.update((seen if key is None else seen[key]).astype(np.float64))
        env.ret_rms.update(rng.normal(3, 5, 50))
        return env

    return normalizer

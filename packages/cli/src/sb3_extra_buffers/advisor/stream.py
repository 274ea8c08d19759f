"""``Stream``: transitions to try storage on, of environments (``make``, ``play``) or from a file (``read``)."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
from stable_baselines3.common.type_aliases import PolicyPredictor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack, VecTransposeImage

from sb3_extra_buffers.checkpoints import open_arrays
from sb3_extra_buffers.codecs import CellSpec
from sb3_extra_buffers.compressed import CompressedDictReplayBuffer, CompressedReplayBuffer
from sb3_extra_buffers.compressed.storage import NO_KEY, parts_of
from sb3_extra_buffers.errors import FileContentError, FileMissingError, MissingExtraError, ParameterError
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.recording import load
from sb3_extra_buffers.training_utils.atari import make_env as make_atari
from sb3_extra_buffers.training_utils.steps import Player, Step

#: A shorter stream says nothing about memory.
MIN_STEPS = 64
#: Names of arrays of observations in files, in the order in which they are looked for.
_OBSERVATIONS = ("observations", "obs", "frames", "arr_0")
_DONES = ("dones", "terminals", "episode_ends")
#: Files of numpy, and their first bytes.
_MAGIC = {".npz": b"PK", ".npy": b"\x93NUMPY"}
#: Modules that register environments, by a pattern of their names, with their package and its extra.
_FAMILIES = {
    "^ALE/|NoFrameskip": ("ale_py", "ale-py", "atari"),
    "^Vizdoom": ("vizdoom.gymnasium_wrapper", "vizdoom", "vizdoom"),
}
_MAX_NBYTES = 1 << 30
_SUPPORTED = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


@dataclass(frozen=True)
class Stream:
    """Steps of environments, in order.

    :param label: where they come from
    :param observation_space: as a buffer of Stable-Baselines3 gets it: images channels first
    """

    label: str
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    n_envs: int
    steps: list[Step] = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.steps) < MIN_STEPS:
            hint = "Play, or record, for longer."
            raise ParameterError("advise", "steps", len(self.steps), f"it takes {MIN_STEPS} to judge by", hint)

    @property
    def spaces(self) -> dict[str, spaces.Space[Any]]:
        """The observation space of each key; a space without keys has the key ``""``."""
        return parts_of(self.observation_space)

    @property
    def transitions(self) -> int:
        """Steps of all environments together."""
        return len(self.steps) * self.n_envs

    def rows(self, key: str, count: int) -> Bytes:
        """Observations of a key, evenly from the whole stream, as rows of bytes."""
        steps = self.steps[:: max(1, len(self.steps) // count)][:count]
        found = [(step.observations if key == NO_KEY else step.observations[key])[0] for step in steps]
        return np.ascontiguousarray(found, self.spaces[key].dtype).reshape(len(found), -1).view(np.uint8)

    @property
    def plain_class(self) -> type[ReplayBuffer]:
        """The buffer class of Stable-Baselines3."""
        return ReplayBuffer if NO_KEY in self.spaces else DictReplayBuffer

    @property
    def buffer_class(self) -> type[CompressedReplayBuffer]:
        """The compressed buffer class."""
        return CompressedReplayBuffer if NO_KEY in self.spaces else CompressedDictReplayBuffer

    def plain_buffer(self, size: int) -> ReplayBuffer:
        """Make a buffer of Stable-Baselines3 for so many transitions."""
        return self.plain_class(size, self.observation_space, self.action_space, "cpu", self.n_envs)

    def compressed_buffer(self, size: int, options: Mapping[str, Any]) -> CompressedReplayBuffer:
        """Make a compressed buffer for so many transitions, with these arguments for storage."""
        return self.buffer_class(size, self.observation_space, self.action_space, "cpu", self.n_envs, **options)


def cell_of(space: spaces.Space[Any]) -> CellSpec:
    """An observation of a space without keys."""
    return CellSpec(np.dtype(space.dtype), max(1, int(np.prod(space.shape or 1))))


def has_channels_last(space: spaces.Space[Any]) -> bool:
    """Whether Stable-Baselines3 transposes images of this space, by VecTransposeImage."""
    return isinstance(space, spaces.Box) and is_image_space(space) and not is_image_space_channels_first(space)


def feed(buffer: ReplayBuffer, steps: list[Step]) -> None:
    for step in steps:
        step.add_to(buffer)


def make(env_id: str | Callable[[], Any], n_envs: int = 1, stack: int | None = None, seed: int = 0) -> VecEnv:
    """Make environments as Stable-Baselines3 passes them to a buffer: Atari games preprocessed, images channels first.

    :param env_id: the name for ``gymnasium.make``; or a function that makes an environment, or vectorized ones, which
        are not preprocessed otherwise
    :param n_envs: number of environments
    :param stack: number of observations that are stacked; ``None`` stacks four of an Atari game, and no others
    :param seed: of the first environment
    """
    if isinstance(env_id, str):
        if "ale_py" in str(look_up(env_id).entry_point):
            # The wrapper skips frames, and takes the maximum of the last two.
            skipped: dict[str, Any] = {} if "NoFrameskip" in env_id else {"frameskip": 1}
            return make_atari(env_id, n_envs, DummyVecEnv, 4 if stack is None else stack, seed, **skipped)
        # A function, not a name: with a name, the environment must be able to render.
        make_one: Callable[[], Any] = partial(gymnasium.make, env_id)
    else:
        make_one = env_id
    try:
        env = make_one()
        if not isinstance(env, (gymnasium.Env, VecEnv)):
            allowed = "it must be a gymnasium.Env or a VecEnv of Stable-Baselines3"
            raise ParameterError("advise", "environment", env, allowed)
        check_spaces(env_id if isinstance(env_id, str) else type(env).__name__, env)
        if isinstance(env, gymnasium.Env):
            made = iter([env])
            env = make_vec_env(lambda: next(made, None) or make_one(), n_envs, seed=seed, vec_env_cls=DummyVecEnv)
        elif n_envs not in (1, env.num_envs):
            raise ParameterError("advise", "envs", n_envs, f"the function made {env.num_envs} environments at once")
    except (gymnasium.error.Error, ImportError) as error:
        raise ParameterError("advise", "environment", env_id, f"it cannot be made ({_first_line(error)})") from error
    env = VecFrameStack(env, stack) if stack is not None and stack > 1 else env
    parts = parts_of(env.observation_space).values()
    return VecTransposeImage(env) if any(map(has_channels_last, parts)) else env


def play(
    env: VecEnv, label: str, steps: int, model: PolicyPredictor | None = None, seed: int = 0, progress: bool = True
) -> Stream:
    """Play, and return the stream that a buffer would be given. The environments are closed.

    The stream takes about a gigabyte at most: of large observations, there are fewer steps.

    :param label: the name of the stream
    :param steps: number of steps of each environment
    :param model: chooses the actions; by default they are random, with this ``seed``
    :param progress: whether to show a bar on a terminal
    """
    check_spaces(label, env)
    step_nbytes = 2 * env.num_envs * sum(cell_of(part).nbytes for part in parts_of(env.observation_space).values())
    steps = min(steps, max(MIN_STEPS, _MAX_NBYTES // step_nbytes))
    env.action_space.seed(seed)

    def act(*_: Any, **__: Any) -> tuple[Any, None]:
        return np.stack([env.action_space.sample() for _ in range(env.num_envs)]), None

    chooser: Any = SimpleNamespace(predict=act) if model is None else model
    player, kept = Player(env, chooser, deterministic=False), []
    with progress_bar(f"Playing {label}", steps, progress) as advance:
        for _ in range(steps):
            kept.append(player.step())
            advance(1)
    env.close()
    return Stream(label, env.observation_space, env.action_space, env.num_envs, kept)


def look_up(env_id: str) -> Any:
    """The registered spec of an environment, after import of the package that registers it."""
    package, _, name = env_id.rpartition(":")
    for pattern, (module, distribution, extra) in _FAMILIES.items():
        if re.search(pattern, name):
            try:
                import_module(module)
            except ImportError as error:
                raise MissingExtraError(name, distribution, extra) from error
    try:
        if package:
            import_module(package)
        return gymnasium.spec(name)
    except ModuleNotFoundError as error:
        problem, hint = f"{error.name} is not installed", f"Run: pip install {error.name}"
        raise ParameterError("advise", "environment", env_id, problem, hint) from error
    except gymnasium.error.Error as error:
        problem = f"Gymnasium does not know it ({_first_line(error)})"
        raise ParameterError("advise", "environment", env_id, problem, _suggestion(name, package)) from error


def _suggestion(name: str, package: str) -> str:
    """A hint with the registered name that is most similar."""
    if find_spec("ale_py") is not None:
        import_module("ale_py")
    # The newest version of each name; current names of Atari games first, then names without a package.
    known = sorted(gymnasium.registry, key=lambda one: (one.startswith("ALE/"), "/" not in one, one))
    bases = {one.rpartition("/")[2].partition("-v")[0].lower(): one for one in known}
    wanted = name.rpartition("/")[2].partition("-v")[0].lower()
    if close := get_close_matches(wanted, bases, n=1):
        return f"Did you mean {bases[close[0]]!r}?"
    hint = "A package that registers environments when it is imported is named before a colon: package:Env-v0."
    return "" if package else hint


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def check_spaces(label: str, env: Any) -> None:
    """Refuse spaces that no buffer of Stable-Baselines3 supports."""
    hint = "Wrap the environment, as for training; the option --make of sb3-buffers advise takes the wrapper."
    for part in parts_of(env.observation_space).values():
        is_flat = part.shape != () if not isinstance(part, spaces.MultiDiscrete) else part.nvec.ndim == 1
        if not isinstance(part, _SUPPORTED) or not (is_flat or isinstance(part, spaces.Discrete)):
            allowed = "buffers of Stable-Baselines3 hold Box, Discrete, MultiDiscrete, MultiBinary, and a Dict of these"
            raise ParameterError(label, "observation_space", env.observation_space, allowed, hint)
    if not isinstance(env.action_space, _SUPPORTED):
        allowed = "buffers of Stable-Baselines3 hold actions of Box, Discrete, MultiDiscrete and MultiBinary"
        raise ParameterError(label, "action_space", env.action_space, allowed, hint)


def read(path: Path, steps: int | None = None) -> Stream:
    """Read observations as the stream of one environment, without actions and rewards.

    :param path: a recording, or an ``.npz`` or ``.npy`` file; in an archive, the array is called ``observations``,
        ``obs`` or ``frames``, and ``dones`` may mark the last observations of episodes
    :param steps: number of transitions to read; ``None`` reads all
    """
    if steps is not None and steps < MIN_STEPS:
        raise ParameterError("advise", "steps", steps, f"it takes {MIN_STEPS} to judge by", "Read more of the file.")
    if not path.exists():
        raise FileMissingError(str(path))
    observations, dones = _arrays(path, steps) if path.suffix in _MAGIC else _recorded(path, steps)
    if observations.dtype.kind not in "buif" or observations.ndim < 2:
        found = f"an array of {observations.dtype} with shape {observations.shape}"
        raise FileContentError(str(path), "observations in order", found, "The first axis counts the observations.")
    if (count := len(observations)) <= MIN_STEPS:
        expected = f"more than {MIN_STEPS} observations"
        raise FileContentError(str(path), expected, f"{count} of them", "Record for longer.")
    if has_channels_last(_space(observations)):
        observations = np.moveaxis(observations, -1, 1)
    transitions, action, reward = [], np.zeros((1, 1), np.int64), np.zeros(1, np.float32)
    for place in np.flatnonzero(~dones[:-1]).tolist():
        now, then = slice(place, place + 1), slice(place + 1, place + 2)
        # The last transition of an episode leads to its last observation.
        transitions.append(Step(observations[now], observations[then], action, action, reward, dones[then], [{}]))
    if len(transitions) < MIN_STEPS:
        found = f"{len(transitions)} of them" if transitions else "that no two observations belong to one episode"
        hint = f"{_DONES[0]!r} is true where an episode ends; leave it out, or record for longer."
        raise FileContentError(str(path), f"{MIN_STEPS} transitions within episodes", found, hint)
    return Stream(path.name, _space(observations), spaces.Discrete(2), 1, transitions)


def _count_needed(dones: NDArray[np.bool_], steps: int | None) -> int:
    """Number of observations that have so many transitions between them, within episodes."""
    places = np.flatnonzero(~dones[:-1])
    return len(dones) if steps is None or len(places) <= steps else int(places[steps - 1]) + 2


def _space(observations: NDArray[Any]) -> spaces.Box:
    dtype, low, high = observations.dtype, -np.inf, np.inf
    if dtype.kind != "f":
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return spaces.Box(low, high, observations.shape[1:], dtype.type)


def _arrays(path: Path, steps: int | None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    magic, hint = _MAGIC[path.suffix], "Make it by numpy.save() or numpy.savez(), of numbers."
    with path.open("rb") as file:  # numpy does not close a file that is no archive
        if (begin := file.read(len(magic))) != magic:
            raise FileContentError(str(path), "arrays of numpy", f"something else: it begins with {begin!r}", hint)
        file.seek(0)
        try:
            found: Any = np.load(file) if path.suffix == ".npz" else {_OBSERVATIONS[0]: np.load(path, mmap_mode="r")}
            names = list(found)
            chosen = next((name for name in _OBSERVATIONS if name in names), names[0] if len(names) == 1 else None)
            marked = next((name for name in _DONES if name in names), None)
            observations, ends = (None if name is None else found[name] for name in (chosen, marked))
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            problem = "content that numpy cannot read: it is damaged, or has arrays of objects"
            raise FileContentError(str(path), "arrays of numpy", problem, hint) from error
    if observations is None:
        hint = f"Call the array {_OBSERVATIONS[0]!r}."
        raise FileContentError(str(path), "an array of observations", ", ".join(names) or "nothing", hint)
    if not observations.ndim:
        raise FileContentError(str(path), "observations in order", f"a single number under {chosen!r}")
    dones = np.zeros(len(observations), np.bool_) if ends is None else np.asarray(ends, np.bool_)
    if dones.shape != (len(observations),):
        problem = f"{dones.shape} for {len(observations)} observations"
        raise FileContentError(str(path), f"{marked!r}, one for each observation", problem)
    needed = _count_needed(dones, steps)
    return observations[:needed], dones[:needed]


def _recorded(path: Path, steps: int | None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    hint = "Give an environment, a recording, or an .npz or .npy file of observations."
    if path.is_dir():
        raise FileContentError(str(path), "observations", "a folder", hint)
    with open_arrays(path) as file:
        if file.kind != "recording":
            raise FileContentError(str(path), "observations", f"a {file.kind}", hint)
    with load(path) as recording:
        if not recording.frame_shape or not len(recording):
            raise FileContentError(str(path), "frames", "a recording without any", "Record with RecordBuffer.")
        clip = recording[: _count_needed(np.asarray(recording.dones, np.bool_), steps)]
        frames = clip.frames
        assert frames is not None
        return np.asarray(frames), np.asarray(clip.dones, np.bool_)

"""Make an environment as for training, and play it for a stream: ``make`` and ``play``."""

from __future__ import annotations

from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.type_aliases import PolicyPredictor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecFrameStack, VecTransposeImage

from sb3_extra_buffers.advisor.stream import MIN_STEPS, Stream, cell_of, has_channels_last, parts_of
from sb3_extra_buffers.errors import MissingExtraError, ParameterError
from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.training_utils.atari import make_env as make_atari
from sb3_extra_buffers.training_utils.steps import Player

#: Modules that register environments, by the prefix of their names, with their package and its extra.
_FAMILIES = {
    "ALE/": ("ale_py", "ale-py", "atari"),
    "Vizdoom": ("vizdoom.gymnasium_wrapper", "vizdoom", "vizdoom"),
}
_ATARI_STACK = 4
_MAX_NBYTES = 1 << 30
_SUPPORTED = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


class RandomPlayer:
    """Plays random actions."""

    def __init__(self, env: VecEnv, seed: int) -> None:
        self._space, self._count = env.action_space, env.num_envs
        self._space.seed(seed)

    def predict(self, *_: Any, **__: Any) -> tuple[Any, None]:
        return np.stack([self._space.sample() for _ in range(self._count)]), None


def make(env_id: str, n_envs: int = 1, stack: int | None = None, seed: int = 0) -> VecEnv:
    """Make environments as Stable-Baselines3 passes them to a buffer: Atari games preprocessed, images channels first.

    :param env_id: the name for ``gymnasium.make``
    :param n_envs: number of environments
    :param stack: number of observations that are stacked; ``None`` stacks four of an Atari game, and no others
    :param seed: of the first environment
    """
    spec = _spec(env_id)
    if "ale_py" in str(spec.entry_point):
        # The wrapper skips frames, and takes the maximum of the last two.
        skipped: dict[str, Any] = {} if "NoFrameskip" in env_id else {"frameskip": 1}
        return make_atari(env_id, n_envs, DummyVecEnv, _ATARI_STACK if stack is None else stack, seed, **skipped)
    try:
        # A function, not a name: with a name, the environment must be able to render.
        env: VecEnv = make_vec_env(partial(gymnasium.make, env_id), n_envs, seed=seed, vec_env_cls=DummyVecEnv)
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
    :param model: chooses the actions; by default they are random
    :param seed: of random actions
    :param progress: whether to show a bar on a terminal
    """
    _check_spaces(label, env)
    step_nbytes = 2 * env.num_envs * sum(cell_of(part).nbytes for part in parts_of(env.observation_space).values())
    steps = min(steps, max(MIN_STEPS, _MAX_NBYTES // step_nbytes))
    player = Player(env, RandomPlayer(env, seed) if model is None else model, deterministic=False)
    kept = []
    with progress_bar(f"Playing {label}", steps, progress) as advance:
        for _ in range(steps):
            kept.append(player.step())
            advance(1)
    env.close()
    return Stream(label, env.observation_space, env.action_space, env.num_envs, kept)


def _spec(env_id: str) -> Any:
    """The registered spec of an environment, after import of the package that registers it."""
    package, _, name = env_id.rpartition(":")
    for prefix, (module, distribution, extra) in _FAMILIES.items():
        if name.startswith(prefix) or (prefix == "ALE/" and "NoFrameskip" in name):
            try:
                import_module(module)
            except ImportError as error:
                raise MissingExtraError(name, distribution, extra) from error
    if package:
        try:
            import_module(package)
        except ModuleNotFoundError as error:
            hint = f"Run: pip install {error.name}"
            raise ParameterError("advise", "environment", env_id, f"{error.name} is not installed", hint) from error
    try:
        return gymnasium.spec(name)
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


def _check_spaces(label: str, env: VecEnv) -> None:
    """Refuse spaces that no buffer of Stable-Baselines3 supports."""
    hint = "Wrap the environment, as for training."
    for part in parts_of(env.observation_space).values():
        is_flat = part.shape != () if not isinstance(part, spaces.MultiDiscrete) else part.nvec.ndim == 1
        if not isinstance(part, _SUPPORTED) or not (is_flat or isinstance(part, spaces.Discrete)):
            allowed = "buffers of Stable-Baselines3 hold Box, Discrete, MultiDiscrete, MultiBinary, and a Dict of these"
            raise ParameterError(label, "observation_space", env.observation_space, allowed, hint)
    if not isinstance(env.action_space, _SUPPORTED):
        allowed = "buffers of Stable-Baselines3 hold actions of Box, Discrete, MultiDiscrete and MultiBinary"
        raise ParameterError(label, "action_space", env.action_space, allowed, hint)

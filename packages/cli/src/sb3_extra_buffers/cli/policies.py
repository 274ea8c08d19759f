"""A saved model that plays."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sb3_extra_buffers.errors import FileContentError, FileMissingError, ParameterError

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.type_aliases import PolicyPredictor
    from stable_baselines3.common.vec_env import VecEnv


def load_policy(policy: Path, algorithm: str, env: VecEnv) -> PolicyPredictor:
    """Load who plays.

    :param policy: the file
    :param algorithm: which algorithm has saved it
    :param env: what is played
    """
    kinds = _algorithms()
    if algorithm.lower() not in kinds:
        allowed = f"it must be the one that has saved the policy: {', '.join(kind.__name__ for kind in kinds.values())}"
        raise ParameterError("advise", "algorithm", algorithm, allowed)
    if not policy.exists() and not policy.with_suffix(".zip").exists():
        raise FileMissingError(str(policy))
    kind = kinds[algorithm.lower()]
    try:
        model: BaseAlgorithm = kind.load(policy, device="cpu")
    except Exception as error:  # whatever Stable-Baselines3 says about a model of somebody else
        hint = "Name the algorithm that has saved it with --algorithm."
        problem = f"what it cannot load ({type(error).__name__}: {error})"
        raise FileContentError(str(policy), f"a policy of {kind.__name__}", problem, hint) from error
    for name in ("observation_space", "action_space"):
        expected, found = getattr(env, name), getattr(model, name)
        if found != expected:
            hint = "Use the environment that it was trained in."
            raise FileContentError(
                str(policy), f"a policy with {name} {_line(expected)}", f"one with {_line(found)}", hint
            )
    return model


def _algorithms() -> dict[str, Any]:
    """All that can be loaded, by name in small letters."""
    import stable_baselines3

    modules = [stable_baselines3]
    if find_spec("sb3_contrib") is not None:
        modules.append(import_module("sb3_contrib"))
    found = {name: part for module in modules for name, part in vars(module).items() if hasattr(part, "learn")}
    return {name.lower(): part for name, part in found.items()}


def _line(space: Any) -> str:
    """A space with many bounds is several lines, and an error is one."""
    return " ".join(str(space).split())

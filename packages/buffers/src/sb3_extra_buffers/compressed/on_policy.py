"""Compressed rollouts for models that take no buffer class."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, TypeVar

from stable_baselines3.common.buffers import DictRolloutBuffer, RolloutBuffer
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from sb3_extra_buffers.compressed.rollout_buffer import CompressedDictRolloutBuffer, CompressedRolloutBuffer
from sb3_extra_buffers.errors import ParameterError

Model = TypeVar("Model", bound=OnPolicyAlgorithm)


def compress_rollouts(model: Model, **storage: Any) -> Model:
    """
    Replace the rollout buffer of a model by its compressed counterpart.

    ``RecurrentPPO`` has no ``rollout_buffer_class``; this is the way to use ours with it::

        model = compress_rollouts(RecurrentPPO("CnnLstmPolicy", env), compression_method="zstd-3")

    Call it again after ``load()``, which makes a new buffer. Models that take a class do not need it, but it works for
    them too.

    :param model: a model that was just made or loaded; a rollout that it has begun is dropped
    :param storage: further arguments of :class:`CompressedRolloutBuffer`
    :return: the same model
    """
    old: Any = getattr(model, "rollout_buffer", None)
    counterparts = _counterparts()
    kind = type(old) if isinstance(old, CompressedRolloutBuffer) else counterparts.get(type(old))
    if kind is None:
        allowed = f"there is a counterpart for {', '.join(cls.__name__ for cls in counterparts)}"
        raise ParameterError("compress_rollouts", "rollout_buffer", type(old).__name__, allowed)
    if hasattr(old, "hidden_state_shape"):
        storage["hidden_state_shape"] = old.hidden_state_shape
    model.rollout_buffer = kind(
        old.buffer_size,
        old.observation_space,
        old.action_space,
        device=old.device,
        gae_lambda=old.gae_lambda,
        gamma=old.gamma,
        n_envs=old.n_envs,
        **storage,
    )
    return model


def _counterparts() -> dict[type[RolloutBuffer], type[CompressedRolloutBuffer]]:
    found: dict[type[RolloutBuffer], type[CompressedRolloutBuffer]] = {
        RolloutBuffer: CompressedRolloutBuffer,
        DictRolloutBuffer: CompressedDictRolloutBuffer,
    }
    if find_spec("sb3_contrib") is None:
        return found  # nor are there models with its buffers
    from sb3_extra_buffers.compressed import contrib

    kinds = (
        contrib.CompressedMaskableRolloutBuffer,
        contrib.CompressedMaskableDictRolloutBuffer,
        contrib.CompressedRecurrentRolloutBuffer,
        contrib.CompressedRecurrentDictRolloutBuffer,
    )
    return {**found, **{kind.__bases__[-1]: kind for kind in kinds}}

"""Replace buffers of Stable-Baselines3 by compressed ones: a pickled replay buffer, or the rollouts of a model."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer, RolloutBuffer
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.save_util import load_from_pkl
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from sb3_extra_buffers.compressed.her_replay_buffer import CompressedHerReplayBuffer
from sb3_extra_buffers.compressed.prefetch import read_rows
from sb3_extra_buffers.compressed.replay_buffer import (
    CompressedDictReplayBuffer,
    CompressedNStepReplayBuffer,
    CompressedReplayBuffer,
)
from sb3_extra_buffers.compressed.rollout_buffer import CompressedDictRolloutBuffer, CompressedRolloutBuffer
from sb3_extra_buffers.errors import FileContentError, ParameterError

Model = TypeVar("Model", bound=OnPolicyAlgorithm)

#: Counterparts of exactly these classes, because additional attributes of subclasses would be lost, and the arguments
#: that only one class takes.
_REPLAY: dict[type[Any], tuple[type[CompressedReplayBuffer], tuple[str, ...]]] = {
    ReplayBuffer: (CompressedReplayBuffer, ()),
    DictReplayBuffer: (CompressedDictReplayBuffer, ()),
    NStepReplayBuffer: (CompressedNStepReplayBuffer, ("n_steps", "gamma")),
    HerReplayBuffer: (CompressedHerReplayBuffer, ("n_sampled_goal", "goal_selection_strategy", "copy_info_dict")),
}
#: Attributes about episodes, for hindsight.
_EPISODES = ("ep_start", "ep_length", "_current_ep_start", "infos")


def convert(path: str | os.PathLike[str], trust_pickle: bool = False, **storage: Any) -> CompressedReplayBuffer:
    """Read a pickled ``ReplayBuffer``, ``DictReplayBuffer``, ``NStepReplayBuffer`` or ``HerReplayBuffer`` of
    Stable-Baselines3, and store its transitions compressed. For the same seed, the result samples the same batches as
    the original. Subclasses are refused, because their additional attributes would be lost, and rollout buffers, which
    are filled again at every update.

    :param path: of a file written by ``model.save_replay_buffer(path)``
    :param trust_pickle: Must be true: reading a pickle runs the code that it names. Do so only with files that you or
        people you trust have made.
    :param storage: Further arguments of :class:`CompressedReplayBuffer`; for a ``HerReplayBuffer`` also its ``env``,
        which is not in the pickle: give it here, or to ``set_env()`` afterwards
    """
    if trust_pickle is not True:
        hint = "Set it only for a file that you trust: it can run any code."
        raise ParameterError("convert", "trust_pickle", trust_pickle, "reading a pickle runs code", hint)
    old = load_from_pkl(os.fspath(path))
    if type(old) not in _REPLAY:
        known = ", ".join(cls.__name__ for cls in _REPLAY)
        hint = "Make the buffer that you want, and add() what this one holds."
        if isinstance(old, RolloutBuffer):
            hint = "A rollout is collected anew at every update: train on with a new buffer, nothing is lost."
        raise FileContentError(str(path), f"one of {known} of Stable-Baselines3", f"a {type(old).__name__}", hint)
    kind, own = _REPLAY[type(old)]
    storage = {name: getattr(old, name) for name in own} | storage
    if isinstance(old, HerReplayBuffer):
        storage.setdefault("env", None)
    names = ("device", "n_envs", "optimize_memory_usage", "handle_timeout_termination")
    same = {name: getattr(old, name) for name in names}
    new = kind(old.buffer_size * old.n_envs, old.observation_space, old.action_space, **same, **storage)
    # Oldest first, each to its original row.
    new.pos = old.pos if old.full else 0
    for row in ((new.pos + np.arange(old.size())) % old.buffer_size).tolist():
        infos = [{"TimeLimit.truncated": bool(timeout)} for timeout in old.timeouts[row]]
        obs = read_rows(old.observations, row)
        if old.optimize_memory_usage:
            next_obs = read_rows(old.observations, (row + 1) % old.buffer_size)
        else:
            next_obs = read_rows(old.next_observations, row)
        new.add(obs, next_obs, old.actions[row], old.rewards[row], old.dones[row], infos)
    if isinstance(old, HerReplayBuffer):
        for name in _EPISODES:  # transitions do not say where partly overwritten episodes begin
            setattr(new, name, getattr(old, name))
    return new


def compress_rollouts(model: Model, **storage: Any) -> Model:
    """Replace the rollout buffer of a model by its compressed counterpart.

    ``RecurrentPPO`` has no ``rollout_buffer_class``; this is the way to use ours with it::

        model = compress_rollouts(RecurrentPPO("CnnLstmPolicy", env), compression_method="zstd-3")

    Call it again after ``load()``, which makes a new buffer. Models that take a class do not need it, but it works for
    them too.

    :param model: a model that was just made or loaded; a rollout that it has begun is dropped
    :param storage: further arguments of :class:`CompressedRolloutBuffer`
    :return: the same model
    """
    old: Any = getattr(model, "rollout_buffer", None)
    counterparts = _rollout_counterparts()
    kind = type(old) if isinstance(old, CompressedRolloutBuffer) else counterparts.get(type(old))
    if kind is None:
        allowed = f"there is a counterpart for {', '.join(cls.__name__ for cls in counterparts)}"
        raise ParameterError("compress_rollouts", "rollout_buffer", type(old).__name__, allowed)
    if hasattr(old, "hidden_state_shape"):
        storage["hidden_state_shape"] = old.hidden_state_shape
    same = {name: getattr(old, name) for name in ("device", "gae_lambda", "gamma", "n_envs")}
    model.rollout_buffer = kind(old.buffer_size, old.observation_space, old.action_space, **same, **storage)
    return model


def _rollout_counterparts() -> dict[type[RolloutBuffer], type[CompressedRolloutBuffer]]:
    kinds: list[type[CompressedRolloutBuffer]] = [CompressedRolloutBuffer, CompressedDictRolloutBuffer]
    if find_spec("sb3_contrib") is not None:
        from sb3_extra_buffers.compressed import contrib

        kinds += [contrib.CompressedMaskableRolloutBuffer, contrib.CompressedMaskableDictRolloutBuffer]
        kinds += [contrib.CompressedRecurrentRolloutBuffer, contrib.CompressedRecurrentDictRolloutBuffer]
    return {kind.__bases__[-1]: kind for kind in kinds}

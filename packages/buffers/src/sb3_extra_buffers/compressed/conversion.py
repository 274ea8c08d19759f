"""``convert``: read a pickled replay buffer of Stable-Baselines3 into a compressed one."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer, RolloutBuffer
from stable_baselines3.common.save_util import load_from_pkl
from stable_baselines3.her.her_replay_buffer import HerReplayBuffer

from sb3_extra_buffers.compressed.her_replay_buffer import CompressedHerReplayBuffer
from sb3_extra_buffers.compressed.replay_buffer import (
    CompressedDictReplayBuffer,
    CompressedNStepReplayBuffer,
    CompressedReplayBuffer,
)
from sb3_extra_buffers.errors import FileContentError, ParameterError

#: Exactly these classes: additional attributes of subclasses would be lost.
_COUNTERPARTS: dict[type[Any], type[CompressedReplayBuffer]] = {
    ReplayBuffer: CompressedReplayBuffer,
    DictReplayBuffer: CompressedDictReplayBuffer,
    NStepReplayBuffer: CompressedNStepReplayBuffer,
    HerReplayBuffer: CompressedHerReplayBuffer,
}
#: Arguments of one class only.
_OWN: dict[type[Any], tuple[str, ...]] = {
    NStepReplayBuffer: ("n_steps", "gamma"),
    HerReplayBuffer: ("n_sampled_goal", "goal_selection_strategy", "copy_info_dict"),
}
#: Attributes about episodes, for hindsight.
_EPISODES = ("ep_start", "ep_length", "_current_ep_start", "infos")


def convert(path: str | os.PathLike[str], trust_pickle: bool = False, **storage: Any) -> CompressedReplayBuffer:
    """
    Read a pickled ``ReplayBuffer``, ``DictReplayBuffer``, ``NStepReplayBuffer`` or ``HerReplayBuffer`` of
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
    kind = _COUNTERPARTS.get(type(old))
    if kind is None:
        known = ", ".join(cls.__name__ for cls in _COUNTERPARTS)
        hint = "Make the buffer that you want, and add() what this one holds."
        if isinstance(old, RolloutBuffer):
            hint = "A rollout is collected anew at every update: train on with a new buffer, nothing is lost."
        raise FileContentError(str(path), f"one of {known} of Stable-Baselines3", f"a {type(old).__name__}", hint)
    storage = {name: getattr(old, name) for name in _OWN.get(type(old), ())} | storage
    if isinstance(old, HerReplayBuffer):
        storage.setdefault("env", None)
    new = kind(
        old.buffer_size * old.n_envs,
        old.observation_space,
        old.action_space,
        device=old.device,
        n_envs=old.n_envs,
        optimize_memory_usage=old.optimize_memory_usage,
        handle_timeout_termination=old.handle_timeout_termination,
        **storage,
    )
    # Oldest first, each to its original row.
    new.pos = old.pos if old.full else 0
    for row in ((new.pos + np.arange(old.size())) % old.buffer_size).tolist():
        infos = [{"TimeLimit.truncated": bool(timeout)} for timeout in old.timeouts[row]]
        obs, following = _at(old.observations, row), _following(old, row)
        new.add(obs, following, old.actions[row], old.rewards[row], old.dones[row], infos)
    if isinstance(old, HerReplayBuffer):
        for name in _EPISODES:  # transitions do not say where partly overwritten episodes begin
            setattr(new, name, getattr(old, name))
    return new


def _at(observations: Any, row: int) -> Any:
    if isinstance(observations, dict):
        return {key: part[row] for key, part in observations.items()}
    return observations[row]


def _following(old: Any, row: int) -> Any:
    if old.optimize_memory_usage:
        return _at(old.observations, (row + 1) % old.buffer_size)
    return _at(old.next_observations, row)

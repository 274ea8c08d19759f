"""Steps of environments, with what buffers need to know about them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.type_aliases import PolicyPredictor
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize


@dataclass(frozen=True)
class Step:
    """One step of several environments."""

    observations: Any
    #: Those that the action led to, also where an episode ended and the environment was reset since.
    next_observations: Any
    #: As the environment got them.
    actions: NDArray[Any]
    #: As Stable-Baselines3 stores them: those of a Box between -1 and 1.
    scaled_actions: NDArray[Any]
    rewards: NDArray[Any]
    dones: NDArray[np.bool_]
    infos: list[dict[str, Any]]


class Player:
    """A model that plays.

    With ``VecNormalize``, the model sees what it was trained with; steps hold what was there before: buffers of
    Stable-Baselines3 normalize when they are sampled.

    :param env: is reset
    :param model: chooses the actions
    :param deterministic: whether it always chooses the best one
    """

    def __init__(self, env: VecEnv, model: PolicyPredictor, deterministic: bool) -> None:
        self._env, self._model, self._deterministic = env, model, deterministic
        self._normalizer = unwrap_vec_normalize(env)
        self._seen: Any = env.reset()
        self._states: Any = None
        self._starts = np.ones(env.num_envs, np.bool_)

    @property
    def observations(self) -> Any:
        """What the environments show now."""
        return self._seen if self._normalizer is None else self._normalizer.get_original_obs()

    def step(self) -> Step:
        """Act once in every environment."""
        before = self.observations
        actions, self._states = self._model.predict(
            self._seen, state=self._states, episode_start=self._starts, deterministic=self._deterministic
        )
        self._seen, rewards, dones, infos = self._env.step(actions)
        self._starts = np.asarray(dones, np.bool_)
        if self._normalizer is not None:
            rewards = self._normalizer.get_original_reward()
        scaled = scale_actions(self._env.action_space, actions)
        return Step(before, self._successors(infos), actions, scaled, rewards, self._starts, infos)

    def _successors(self, infos: list[dict[str, Any]]) -> Any:
        """What the actions led to. Where an episode ended, the environment already shows the next one."""
        after = self.observations
        ends = [env for env in np.flatnonzero(self._starts) if infos[env].get("terminal_observation") is not None]
        if not ends:
            return after
        after = copy.deepcopy(after)
        for env in ends:
            last = infos[env]["terminal_observation"]
            if self._normalizer is not None:
                last = self._normalizer.unnormalize_obs(last)
            if isinstance(after, dict):
                for key, rows in after.items():
                    rows[env] = last[key]
            else:
                after[env] = last
        return after


def scale_actions(space: spaces.Space[Any], actions: NDArray[Any]) -> NDArray[Any]:
    """Actions as off-policy algorithms store them: those of a bounded Box between -1 and 1, others as they are."""
    if not (isinstance(space, spaces.Box) and space.is_bounded()):
        return actions
    # Term by term as in BasePolicy.scale_action, for equal bits.
    scaled: NDArray[Any] = 2.0 * ((actions - space.low) / (space.high - space.low)) - 1.0
    return scaled

"""Steps of environments as replay buffers store them, and a player that makes them."""

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
    #: The observations after the actions: at the end of an episode the last one, not that of the next episode.
    next_observations: Any
    #: As the environment got them.
    actions: NDArray[Any]
    #: As Stable-Baselines3 stores them: actions of a Box scaled to -1 to 1.
    scaled_actions: NDArray[Any]
    rewards: NDArray[Any]
    dones: NDArray[np.bool_]
    infos: list[dict[str, Any]]

    def add_to(self, buffer: Any) -> None:
        """Add the step to a replay buffer, as an algorithm does."""
        buffer.add(self.observations, self.next_observations, self.scaled_actions, self.rewards, self.dones, self.infos)


class Player:
    """A model that plays environments, which are reset.

    With ``VecNormalize``, the model gets normalized observations and steps hold the original ones: buffers of
    Stable-Baselines3 normalize when they are sampled.
    """

    def __init__(self, env: VecEnv, model: PolicyPredictor, deterministic: bool) -> None:
        self.env, self._model, self._deterministic = env, model, deterministic
        self._normalizer = unwrap_vec_normalize(env)
        self._seen: Any = env.reset()
        self._states: Any = None
        self._starts = np.ones(env.num_envs, np.bool_)

    @property
    def observations(self) -> Any:
        return self._seen if self._normalizer is None else self._normalizer.get_original_obs()

    def step(self) -> Step:
        before = self.observations
        actions, self._states = self._model.predict(
            self._seen, state=self._states, episode_start=self._starts, deterministic=self._deterministic
        )
        self._seen, rewards, dones, infos = self.env.step(actions)
        self._starts = np.asarray(dones, np.bool_)
        if self._normalizer is not None:
            rewards = self._normalizer.get_original_reward()
        scaled = _scale_actions(self.env.action_space, actions)
        return Step(before, self._next_observations(infos), actions, scaled, rewards, self._starts, infos)

    def _next_observations(self, infos: list[dict[str, Any]]) -> Any:
        """Where an episode ended, its last observation instead of the first one of the next episode."""
        ends = [env for env in np.flatnonzero(self._starts) if infos[env].get("terminal_observation") is not None]
        after = copy.deepcopy(self.observations) if ends else self.observations
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


def _scale_actions(space: spaces.Space[Any], actions: NDArray[Any]) -> NDArray[Any]:
    """Scale actions of a bounded Box to -1 to 1, as off-policy algorithms store them."""
    if not (isinstance(space, spaces.Box) and space.is_bounded()):
        return actions
    # Term by term as in BasePolicy.scale_action, for equal bits.
    scaled: NDArray[Any] = 2.0 * ((actions - space.low) / (space.high - space.low)) - 1.0
    return scaled

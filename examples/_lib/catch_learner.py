"""DQN with a small network for Catch, and a random player."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecTransposeImage

from examples._lib.catch import Catch
from examples._lib.networks import SmallCnn

#: Transitions before the first update.
WARM_UP = 1000
_ENVIRONMENTS = 8
_STACK = 4
_EPISODES = 40


class RandomPlayer:
    """A player that chooses actions at random.

    :param seed: seed of the actions
    """

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> Any:
        """An action for each environment, in the form of Stable-Baselines3."""
        del episode_start, deterministic
        return self._random.integers(3, size=len(observation)), state


def make_env(seed: int, games: int = _ENVIRONMENTS) -> VecEnv:
    """A vectorized environment, wrapped as Stable-Baselines3 wraps Atari: four frames stacked, channels first.

    :param seed: seed of the games
    :param games: number of environments
    """
    return VecTransposeImage(VecFrameStack(make_vec_env(Catch, games, seed=seed), _STACK))


def make_learner(
    steps: int,
    seed: int,
    buffer_class: type[ReplayBuffer],
    buffer_kwargs: dict[str, Any],
    games: int = _ENVIRONMENTS,
    algorithm: type[DQN] = DQN,
) -> DQN:
    """A DQN whose buffer holds all transitions of the training.

    :param steps: length of the training
    :param seed: seed of games, network and exploration
    :param buffer_class: class of its replay buffer
    :param buffer_kwargs: further arguments of that class
    :param games: number of environments
    :param algorithm: ``DQN`` or a subclass of it
    """
    return algorithm(
        "CnnPolicy",
        make_env(seed, games),
        learning_rate=_learning_rate,
        buffer_size=steps,
        learning_starts=WARM_UP,
        gamma=0.95,
        train_freq=1,
        target_update_interval=500,
        exploration_fraction=0.25,
        exploration_final_eps=0.02,
        replay_buffer_class=buffer_class,
        replay_buffer_kwargs=buffer_kwargs,
        policy_kwargs={"features_extractor_class": SmallCnn, "net_arch": []},
        seed=seed,
        device="cpu",
    )


def _learning_rate(remaining: float) -> float:
    # Decreasing: with a constant rate, the return fluctuates until the end.
    return 1e-4 + 9e-4 * remaining


def mean_return(player: Any, seed: int) -> float:
    """Mean number of caught balls over 40 episodes, without exploration.

    :param player: a model, or an object with ``predict``
    :param seed: seed of the training; the games of the evaluation are different ones
    """
    env = make_env(seed + _ENVIRONMENTS)
    returns, _ = evaluate_policy(player, env, n_eval_episodes=_EPISODES, return_episode_rewards=True)
    env.close()
    values: NDArray[Any] = np.asarray(returns)
    return float(values.mean())

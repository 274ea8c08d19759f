"""Who plays Catch: a DQN with a small network, and somebody who presses buttons at random."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecTransposeImage

from examples.catch import Catch
from examples.small_cnn import SmallCnn

#: Transitions that are collected before the first update.
WARM_UP = 1000
_ENVIRONMENTS = 8
_STACK = 4
_EPISODES = 40


class RandomPlayer:
    """Presses buttons without looking.

    :param seed: of the buttons
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
    """Games side by side, wrapped as Stable-Baselines3 wraps Atari: four frames stacked, channels first.

    :param seed: of the games
    :param games: how many
    """
    return VecTransposeImage(VecFrameStack(make_vec_env(Catch, games, seed=seed), _STACK))


def make_learner(
    steps: int,
    seed: int,
    buffer_class: type[ReplayBuffer],
    buffer_kwargs: dict[str, Any],
    games: int = _ENVIRONMENTS,
) -> DQN:
    """A learner that keeps every transition it will see.

    :param steps: how long it will train
    :param seed: of games, network and exploration
    :param buffer_class: where it keeps transitions
    :param buffer_kwargs: what that class takes besides
    :param games: how many it plays side by side
    """
    return DQN(
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
    # Smaller and smaller steps: with a constant rate, what is learnt still comes and goes from one moment to the next.
    return 1e-4 + 9e-4 * remaining


def mean_return(player: Any, seed: int) -> float:
    """How many balls of an episode a player catches, on average over 40 episodes. Exploration is off.

    :param player: a model, or anybody who predicts
    :param seed: of the games, which are not those of the training
    """
    env = make_env(seed + _ENVIRONMENTS)
    returns, _ = evaluate_policy(player, env, n_eval_episodes=_EPISODES, return_episode_rewards=True)
    env.close()
    values: NDArray[Any] = np.asarray(returns)
    return float(values.mean())

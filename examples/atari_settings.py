"""Settings of Stable-Baselines3's zoo for Atari, whatever the buffer."""

from __future__ import annotations

from typing import Any

#: How long the zoo trains, in steps of all environments together.
DQN_STEPS, PPO_STEPS = 5_000_000, 10_000_000
#: The same, to see that it runs.
DQN_QUICK_STEPS = 1_000
#: Steps of each environment in a rollout.
ROLLOUT = 128

_UPDATE_EVERY = 4  # transitions


def dqn_settings(n_envs: int, quick: bool) -> dict[str, Any]:
    """What ``DQN`` is given.

    :param n_envs: games at once
    :param quick: with a small buffer, and updates from the first moment on
    """
    return {
        "learning_rate": 1e-4,
        "buffer_size": 2_000 if quick else 100_000,
        "learning_starts": 800 if quick else 100_000,
        "train_freq": _UPDATE_EVERY,
        "gradient_steps": n_envs,  # each of the steps between has a transition for each environment
        "target_update_interval": 1_000,
        "exploration_fraction": 0.1,
        "exploration_final_eps": 0.01,
    }


def ppo_settings(n_envs: int) -> dict[str, Any]:
    """What ``PPO`` is given.

    :param n_envs: games at once
    """
    return {
        "learning_rate": 2.5e-4,
        "n_steps": ROLLOUT,
        "n_epochs": 4,
        "batch_size": ROLLOUT * n_envs // 4,
        "clip_range": 0.1,
        "ent_coef": 0.01,
    }

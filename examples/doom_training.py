"""PPO on masks of Doom, with rollouts that are kept compressed."""

from __future__ import annotations

from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from examples.doom_env import DoomEnv
from sb3_extra_buffers.compressed import CompressedRolloutBuffer
from sb3_extra_buffers.compressed.report import MemoryReport

_ROLLOUT = 128  # steps of each environment


def train_on_masks(scenario: str, steps: int, n_envs: int, seed: int) -> MemoryReport:
    """Train, and return what the last rollout took.

    :param scenario: what is played
    :param steps: how long, of all environments together; whole rollouts are collected
    :param n_envs: how many environments
    :param seed: of games, network and exploration
    """
    env = make_vec_env(DoomEnv, n_envs, seed=seed, env_kwargs={"scenario": scenario, "observe": "mask"})
    try:
        model = PPO(
            "CnnPolicy",
            env,
            n_steps=_ROLLOUT,
            n_epochs=2,
            batch_size=_ROLLOUT,
            rollout_buffer_class=CompressedRolloutBuffer,
            seed=seed,
            device="cpu",
        )
        model.learn(steps)
        assert isinstance(model.rollout_buffer, CompressedRolloutBuffer)
        return model.rollout_buffer.memory_report()
    finally:
        env.close()

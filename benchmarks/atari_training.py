"""Models on Atari as Stable-Baselines3 trains them: eight environments for PPO, one for DQN, four frames stacked."""

from __future__ import annotations

from typing import Any

from stable_baselines3 import DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, VecTransposeImage

from benchmarks.atari import STACK
from sb3_extra_buffers.compressed import CompressedReplayBuffer, CompressedRolloutBuffer
from sb3_extra_buffers.errors import MissingExtraError, ParameterError

#: What is trained in one piece: a rollout with its updates for PPO, some updates for DQN.
PIECE = {"PPO": 128 * 8, "DQN": 240}
#: What is trained before anything is timed: compiled code, first updates, a replay buffer to sample from.
WARM_UP = {"PPO": 128 * 8, "DQN": 1000}
_DQN_BUFFER = 2000
_SEED = 0


def make_model(algorithm: str, game: str, codec: str | None) -> BaseAlgorithm:
    """A model with fresh environments. The same arguments give the same model.

    :param algorithm: ``"PPO"`` or ``"DQN"``
    :param game: the name of a game, such as ``"Pong"``
    :param codec: of a compressed buffer; ``None`` takes that of Stable-Baselines3
    """
    kwargs = {"compression_method": codec}
    settings: dict[str, Any]
    if algorithm == "PPO":
        # The settings of Stable-Baselines3's zoo for Atari.
        settings = {"n_steps": 128, "n_epochs": 4, "batch_size": 256, "learning_rate": 2.5e-4, "clip_range": 0.1}
        if codec is not None:
            settings |= {"rollout_buffer_class": CompressedRolloutBuffer, "rollout_buffer_kwargs": kwargs}
        return PPO("CnnPolicy", _environments(game, 8), ent_coef=0.01, seed=_SEED, device="cpu", **settings)
    settings = {"buffer_size": _DQN_BUFFER, "learning_starts": WARM_UP["DQN"] - 100, "exploration_fraction": 0.1}
    if codec is not None:
        settings |= {"replay_buffer_class": CompressedReplayBuffer, "replay_buffer_kwargs": kwargs}
    return DQN("CnnPolicy", _environments(game, 1), seed=_SEED, device="cpu", **settings)


def _environments(game: str, count: int) -> VecEnv:
    feature = "Training on an Atari game"
    try:
        import ale_py
        import gymnasium
    except ImportError as error:
        raise MissingExtraError(feature, "ale-py", "atari") from error
    try:
        import cv2  # noqa: F401  # the wrappers of Stable-Baselines3 need it
    except ImportError as error:
        raise MissingExtraError(feature, "opencv-python-headless", "atari") from error
    # The emulator announces itself on stderr when it is made, unless only errors are asked for.
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    gymnasium.register_envs(ale_py)
    # As in the «NoFrameskip-v4» environments: the wrappers skip frames, and actions are never repeated at random.
    emulator = {"frameskip": 1, "repeat_action_probability": 0.0}
    try:
        games = make_atari_env(f"ALE/{game}-v5", count, seed=_SEED, env_kwargs=emulator)
    except gymnasium.error.UnregisteredEnv as error:
        allowed = "it must be a game that ale-py has, such as 'MsPacman' or 'Pong'"
        raise ParameterError("make_model", "game", game, allowed, str(error)) from error
    return VecTransposeImage(VecFrameStack(games, STACK))

"""Let a saved model play, and say how good it is. See ``python -m examples.evaluate --help``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.options import positive
from sb3_extra_buffers.errors import MissingExtraError

try:
    from stable_baselines3.common.vec_env import DummyVecEnv

    from benchmarks.console import table_console
    from examples.playing import add_model_options, add_playing_options, named_model, show_returns
    from examples.training_options import env_id, errors_in_one_line, found_device
    from examples.training_session import show_memory
    from sb3_extra_buffers.compressed import CompressedReplayBuffer
    from sb3_extra_buffers.training_utils.atari import make_env
    from sb3_extra_buffers.training_utils.eval_model import eval_model
except ModuleNotFoundError as error:
    sys.exit(f"error: {MissingExtraError('This example', error.name or 'stable-baselines3', 'sb3')}")

_EPISODES = 20


def main(arguments: Sequence[str] | None = None) -> None:
    """Play whole games, print their scores, and keep what was seen if asked to."""
    options = _options(arguments)
    with errors_in_one_line():
        trained, folder = named_model(options)
        model = trained.load(folder, found_device(options.device))
        env = make_env(env_id(options.game), options.envs, DummyVecEnv, seed=options.seed)
        buffer = None
        if options.keep is not None:
            spaces = env.observation_space, env.action_space
            buffer = CompressedReplayBuffer(options.keep, *spaces, device="cpu", n_envs=options.envs)
        # As Stable-Baselines3's zoo does for Atari: always the same action in the same place can go on for ever.
        returns, seconds = eval_model(options.episodes, env, model, buffer=buffer, deterministic=False)
        show_returns(returns)
        if buffer is not None:
            show_memory(buffer, table_console())
            print(f"it took {seconds[0]:.1f} s to add them")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.evaluate",
        description="Let a model play that python -m examples.train_replay (dqn) or train_rollout (ppo) has saved. "
        "What counts are whole games with their true scores; actions are drawn.",
        epilog="example: python -m examples.evaluate --game MsPacman --algorithm dqn --episodes 40 --keep 100000",
    )
    add_model_options(parser)
    add_playing_options(parser, _EPISODES)
    parser.add_argument("--envs", type=positive, help="games at once (default: 4)")
    keep = "keep the newest N transitions in a compressed replay buffer, and print what memory they take"
    parser.add_argument("--keep", type=positive, metavar="N", help=keep)
    parser.add_argument("--quick", action="store_true", help="one episode of one game, unless other options say more")
    options = parser.parse_args(arguments)
    options.envs = options.envs or (1 if options.quick else 4)
    options.episodes = options.episodes or (1 if options.quick else _EPISODES)
    return options


if __name__ == "__main__":
    main()

"""Evaluate a saved model over whole games."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # run as a file: import from the root of the checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples._lib.packages import required_packages

with required_packages():
    from stable_baselines3.common.vec_env import DummyVecEnv

    from benchmarks._lib.console import positive, table_console
    from examples._lib.atari import env_id, found_device
    from examples._lib.playing import add_model_options, add_playing_options, named_model, show_returns
    from examples._lib.training import errors_in_one_line, show_memory
    from sb3_extra_buffers.compressed import CompressedReplayBuffer
    from sb3_extra_buffers.training_utils.atari import make_env
    from sb3_extra_buffers.training_utils.eval_model import eval_model

_EPISODES = 20


def main(arguments: Sequence[str] | None = None) -> None:
    """Play whole games, print their scores, and store the transitions if ``--keep`` is given."""
    options = _options(arguments)
    with errors_in_one_line():
        model = named_model(options).load(found_device(options.device))
        env = make_env(env_id(options.game), options.envs, DummyVecEnv, seed=options.seed)
        buffer = None
        if options.keep is not None:
            spaces = env.observation_space, env.action_space
            buffer = CompressedReplayBuffer(options.keep, *spaces, device="cpu", n_envs=options.envs)
        # As in Stable-Baselines3's zoo for Atari: a deterministic policy can get stuck in a loop.
        returns, seconds = eval_model(options.episodes, env, model, buffer=buffer, deterministic=False)
        show_returns(returns)
        if buffer is not None:
            show_memory(buffer, table_console())
            print(f"time to add them: {seconds[0]:.1f} s")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    command = "python examples/example_evaluate.py"
    parser = argparse.ArgumentParser(
        prog=command,
        description="Evaluate a model of example_train_replay.py (dqn) or example_train_rollout.py (ppo): whole games, "
        "true scores, sampled actions.",
        epilog=f"example: {command} --game MsPacman --algorithm dqn --episodes 40 --keep 100000",
    )
    add_model_options(parser)
    add_playing_options(parser, _EPISODES)
    parser.add_argument("--envs", type=positive, help="number of environments (default: 4)")
    keep = "store the newest N transitions in a compressed replay buffer, and print its memory"
    parser.add_argument("--keep", type=positive, metavar="N", help=keep)
    parser.add_argument("--quick", action="store_true", help="one episode of one game; other options still apply")
    options = parser.parse_args(arguments)
    options.envs = options.envs or (1 if options.quick else 4)
    options.episodes = options.episodes or (1 if options.quick else _EPISODES)
    return options


if __name__ == "__main__":
    main()

"""Several processes play, one learns: an unmodified DQN. See ``python -m examples.train_actors --help``."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.console import counted, progress_bar, table_console
from benchmarks.options import positive
from sb3_extra_buffers.errors import MissingExtraError

try:
    import torch as th
    from stable_baselines3 import DQN
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.utils import polyak_update

    from examples.actors import Actors
    from examples.catch import BALLS
    from examples.demo_learner import WARM_UP, RandomPlayer, make_learner, mean_return
    from sb3_extra_buffers.compressed import CompressedReplayBuffer
    from sb3_extra_buffers.sharing import Feeder
except ModuleNotFoundError as error:
    sys.exit(f"error: {MissingExtraError('The example', error.name or 'stable-baselines3', 'sb3')}")

_STEPS, _QUICK = 20_000, 3_000
#: Rows between two updates of what actors play, and of the target network.
_PUBLISH, _TARGET = 50, 250
#: Rows after which the first actor is killed, if that is asked for.
_KILL = 100


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and say what was learnt and what memory the transitions took."""
    options = _options(arguments)
    th.set_num_threads(1)
    console = table_console()
    model = make_learner(options.steps, options.seed, CompressedReplayBuffer, {}, games=options.actors)
    model.set_logger(configure(None, []))
    # Rings in memory where there is a file system for it; elsewhere in a folder, where they are cached anyway.
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder, progress_bar() as progress:
        actors = Actors(Path(folder), options.actors, options.steps, model, options.seed)
        try:
            with counted(progress, f"{options.actors} actors", options.steps) as report:
                learn(model, actors, options.kill, report)
        finally:
            actors.stop()
    random, learnt = (mean_return(player, options.seed) for player in (RandomPlayer(options.seed), model))
    console.print(f"random player: {random:.1f} of {BALLS} balls; the learner: {learnt:.1f}", highlight=False)
    if options.kill:
        console.print(f"actors that were killed and replaced: {actors.replaced}", highlight=False)
    assert isinstance(model.replay_buffer, CompressedReplayBuffer)
    console.print(model.replay_buffer.memory_report(), highlight=False)


def learn(model: DQN, actors: Actors, kill: bool, report: Callable[[int], None]) -> None:
    """Add what actors bring, and train on it, until they have brought everything.

    :param model: who learns
    :param actors: who plays
    :param kill: whether to kill an actor on the way
    :param report: called with the number of transitions
    """
    feeder, rows, published = Feeder(model.replay_buffer, actors.rings), 0, 0
    while not feeder.is_ended:
        actors.watch()
        fed = feeder.feed(limit=16)
        if not fed:
            time.sleep(0.001)
            continue
        before, rows = rows, rows + fed
        if kill and before < _KILL <= rows:
            actors.kill(0)
        if rows * len(actors.rings) >= WARM_UP:
            model.train(gradient_steps=fed, batch_size=model.batch_size)
        if rows // _TARGET > before // _TARGET:
            polyak_update(model.q_net.parameters(), model.q_net_target.parameters(), 1.0)
        if rows - published >= _PUBLISH:
            published = rows
            actors.publish(model)
        report(rows * len(actors.rings))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m examples.train_actors",
        description="Several processes play Catch, each with a ring in shared memory. One process feeds what they see "
        "into a compressed replay buffer and trains an unmodified DQN on it; weights go back over a board.",
        epilog="example: python -m examples.train_actors --actors 4 --kill",
    )
    parser.add_argument("--actors", type=positive, default=2, help="processes that play (default: %(default)s)")
    parser.add_argument("--steps", type=positive, default=_STEPS, help="transitions in all (default: %(default)s)")
    parser.add_argument("--seed", type=positive, default=1, help="of games and network (default: 1)")
    parser.add_argument("--kill", action="store_true", help="kill an actor on the way, and see that training goes on")
    quick = f"only {_QUICK:,} transitions: shows that it runs"
    parser.add_argument("--quick", dest="steps", action="store_const", const=_QUICK, help=quick)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

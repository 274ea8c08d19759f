"""Several processes play, one trains an unmodified DQN."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

if not __package__:  # run as a file: import from the root of the checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples._lib.packages import required_packages

with required_packages():
    import torch as th
    from stable_baselines3 import DQN
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.utils import polyak_update

    from benchmarks._lib.console import counted, positive, progress_bar, table_console
    from examples._lib.actors import Actors
    from examples._lib.catch import BALLS
    from examples._lib.catch_learner import WARM_UP, RandomPlayer, make_learner, mean_return
    from examples._lib.training import add_seed_option
    from sb3_extra_buffers.compressed import CompressedReplayBuffer
    from sb3_extra_buffers.sharing import Feeder

_STEPS, _QUICK = 20_000, 3_000
#: Steps between two updates of the actors' weights, and of the target network.
_PUBLISH, _TARGET = 50, 250
#: Steps after which ``--kill`` kills the first actor.
_KILL = 100


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, print the returns and the memory of the buffer."""
    options = _options(arguments)
    th.set_num_threads(1)
    console = table_console()
    model = make_learner(options.steps, options.seed, CompressedReplayBuffer, {}, games=options.actors)
    model.set_logger(configure(None, []))
    # Rings are files: in a file system in memory if there is one.
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
    """Add the transitions of the actors and train on them until all actors have ended.

    :param model: the model
    :param actors: the processes that play
    :param kill: whether to kill an actor during the training
    :param report: called with the number of transitions
    """
    feeder, steps, published = Feeder(model.replay_buffer, actors.rings), 0, 0
    while not feeder.is_ended:
        actors.watch()
        fed = feeder.feed(limit=16)
        if not fed:
            time.sleep(0.001)
            continue
        before, steps = steps, steps + fed
        if kill and before < _KILL <= steps:
            actors.kill(0)
        if steps * len(actors.rings) >= WARM_UP:
            model.train(gradient_steps=fed, batch_size=model.batch_size)
        if steps // _TARGET > before // _TARGET:
            polyak_update(model.q_net.parameters(), model.q_net_target.parameters(), 1.0)
        if steps - published >= _PUBLISH:
            published = steps
            actors.publish(model)
        report(steps * len(actors.rings))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python examples/example_train_actors.py",
        description="Several processes play Catch and write transitions to rings in shared memory. One process adds "
        "them to a compressed replay buffer, trains an unmodified DQN, and publishes its weights on a board.",
        epilog="example: python examples/example_train_actors.py --actors 4 --kill",
    )
    parser.add_argument(
        "--actors", type=positive, default=2, help="number of processes that play (default: %(default)s)"
    )
    parser.add_argument(
        "--steps", type=positive, default=_STEPS, help="total number of transitions (default: %(default)s)"
    )
    add_seed_option(parser)
    parser.add_argument("--kill", action="store_true", help="kill an actor during the training; it is replaced")
    quick = f"a short run of {_QUICK:,} transitions"
    parser.add_argument("--quick", dest="steps", action="store_const", const=_QUICK, help=quick)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

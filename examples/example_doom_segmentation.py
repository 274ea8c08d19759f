"""Memory of Doom as pictures, as masks of object classes, and as compressed masks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

if not __package__:  # run as a file: import from the root of the checkout
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples._lib.packages import required_packages

with required_packages():
    import numpy as np
    from rich import box
    from rich.progress import Progress
    from rich.table import Table
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import DummyVecEnv, VecTransposeImage

    from benchmarks._lib.buffers import SB3
    from benchmarks._lib.console import counted, positive, progress_bar, table_console
    from benchmarks._lib.doom import DoomEnv
    from benchmarks._lib.game_recording import record
    from benchmarks._lib.measure import measure_in_child
    from benchmarks._lib.plotting import check_plot_option
    from examples._lib.contenders import Saving, chosen, measure_saving
    from examples._lib.training import errors_in_one_line
    from sb3_extra_buffers.compressed import CompressedRolloutBuffer, MemoryReport

_ENVIRONMENTS = 4
_TRANSITIONS, _QUICK_TRANSITIONS = 8_000, 600
_MILLION = 1_000_000
_ROLLOUT = 128  # steps of each environment
_NOTE = (
    "SB3: its ReplayBuffer. All with optimize_memory_usage: one observation per step; without it, SB3 needs twice as "
    "much. Memory: growth of the process; the last column is extrapolated from it."
)
#: Observations that are stored, and the buffers that store them.
_CONTENDERS = {
    "rgb": (SB3, "zstd-5", "frames/speed"),
    "mask": (SB3, "rle-jit", "zstd-5", "zstd3", "frames/speed", "frames/memory"),
}
_QUICK = {"rgb": (SB3,), "mask": (SB3, "rle-jit", "zstd-5", "frames/speed")}


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, store the observations in several ways, show the figures, and train on masks if asked to."""
    options = _options(arguments)
    console = table_console()
    with errors_in_one_line():
        with TemporaryDirectory() as folder:
            results = _measure(folder, options)
            title = f"{options.transitions:,} transitions of {options.scenario}, {_ENVIRONMENTS} environments"
            console.print(_table(title, results))
            console.print(_NOTE, highlight=False)
            if options.plot is not None:
                from examples._lib.memory_plots import plot_doom

                plot_doom(options.plot, folder, options.scenario, results)
                console.print(f"Picture: {options.plot.resolve()}", highlight=False, markup=False, soft_wrap=True)
        if options.train:
            console.print(train_on_masks(options.scenario, options.train, _ENVIRONMENTS, options.seed))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python examples/example_doom_segmentation.py",
        description="Play Doom at random, without a window, and compare the memory of the observations: as pictures, "
        "as masks of object classes, and as compressed masks.",
        epilog="example: python examples/example_doom_segmentation.py --scenario defend_the_center --plot doom.png",
    )
    scenario = "scenario of ViZDoom (default: %(default)s)"
    parser.add_argument("--scenario", default="deadly_corridor", help=scenario)
    size = f"number of transitions (default: {_TRANSITIONS:,}, with --quick {_QUICK_TRANSITIONS})"
    parser.add_argument("--transitions", type=positive, help=size)
    parser.add_argument("--seed", type=positive, default=1, help="seed of the games and of the player (default: 1)")
    train = "afterwards train PPO on masks with a compressed buffer (default: 1,024 steps)"
    parser.add_argument("--train", type=positive, nargs="?", const=1024, metavar="STEPS", help=train)
    picture = "draw a frame, its mask, and the memory, as .svg or .png"
    parser.add_argument("--plot", type=Path, metavar="FILE", help=picture)
    parser.add_argument("--quick", action="store_true", help="a short run of a minute: few transitions, fewer buffers")
    options = parser.parse_args(arguments)
    options.transitions = options.transitions or (_QUICK_TRANSITIONS if options.quick else _TRANSITIONS)
    if options.transitions % _ENVIRONMENTS or options.transitions < 64 * _ENVIRONMENTS:
        allowed = f"it must be a multiple of {_ENVIRONMENTS}, and at least {64 * _ENVIRONMENTS}"
        parser.error(f"--transitions {options.transitions}: {allowed}")
    if options.plot is not None:
        check_plot_option(parser, options.plot)
    return options


def _measure(folder: str, options: argparse.Namespace) -> dict[str, list[Saving]]:
    """Figures of each buffer, by kind of observation."""
    contenders = _QUICK if options.quick else _CONTENDERS
    results: dict[str, list[Saving]] = {}
    with progress_bar() as progress:
        for observe, names in contenders.items():
            own = Path(folder, observe)
            own.mkdir()
            _play(str(own), observe, options, progress)
            installed, _ = chosen([name for name in names if name != SB3], options.quick)
            results[observe] = []
            with counted(progress, f"Storing {observe}", len(names)) as report:
                for name in (SB3, *installed):
                    result = measure_in_child(measure_saving, str(own), name, options.transitions, float("inf"), 20)
                    results[observe].append(result)
                    report(len(results[observe]))
    return results


def _play(folder: str, observe: str, options: argparse.Namespace, progress: Progress) -> None:
    """Record a game. It is the same for every kind of observation."""
    env = VecTransposeImage(DummyVecEnv([lambda: DoomEnv(options.scenario, observe) for _ in range(_ENVIRONMENTS)]))
    env.seed(options.seed)
    env.action_space.seed(options.seed)
    steps = options.transitions // _ENVIRONMENTS
    try:
        with counted(progress, f"Playing: {observe}", steps) as report:
            record(folder, env, steps, lambda seen: np.array([env.action_space.sample() for _ in seen]), report)
    finally:
        env.close()


def _table(title: str, results: dict[str, list[Saving]]) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("observations")
    table.add_column("buffer", no_wrap=True)
    for heading in ("bytes each", "of RGB", "add, µs", "sample(32), ms", "GB for a million"):
        table.add_column(heading, justify="right", no_wrap=True)
    whole = results["rgb"][0].resident
    for observe, savings in results.items():
        table.add_section()
        for saving in savings:
            each = saving.resident / saving.transitions
            table.add_row(
                "pictures (RGB)" if observe == "rgb" else "masks",
                saving.name,
                f"{each:,.0f}",
                f"{saving.resident / whole:.2%}",
                f"{saving.filling.time.cpu / saving.transitions * 1e6:,.0f}",
                f"{saving.sample[32].cpu * 1e3:.2f}",
                f"{each * _MILLION / 1e9:,.2f}",
            )
    return table


def train_on_masks(scenario: str, steps: int, n_envs: int, seed: int) -> MemoryReport:
    """Train PPO on masks, and return the memory of the last rollout.

    :param scenario: the scenario
    :param steps: steps of all environments together; whole rollouts are collected
    :param n_envs: number of environments
    :param seed: seed of games, network and exploration
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


if __name__ == "__main__":
    main()

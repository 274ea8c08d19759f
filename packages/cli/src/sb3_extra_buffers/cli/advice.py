"""``advise``: try every codec and layout on real observations, and print what to use."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sb3_extra_buffers.cli.console import console, print_json, table
from sb3_extra_buffers.codecs import names
from sb3_extra_buffers.compressed.report import readable
from sb3_extra_buffers.errors import FileContentError, FileMissingError, FileWriteError, ParameterError
from sb3_extra_buffers.stores import AUTO, PREFERENCES

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from stable_baselines3.common.type_aliases import PolicyPredictor
    from stable_baselines3.common.vec_env import VecEnv

    from sb3_extra_buffers.advisor import Advice, Stream

_QUICK_STEPS, _QUICK_ROUNDS = 500, 5
#: Suffixes of files with observations; any other source that is no file is an environment.
_FILES = {".npz", ".npy", ".safetensors", ".rec", ".recording"}
#: A longer list of names is replaced by its length.
_MAX_NAMES = 8


def advise(
    source: Annotated[
        str, Argument(help="An environment such as ALE/MsPacman-v5, a recording, or an .npz or .npy file.")
    ],
    size: Annotated[int, Option(help="The planned size of the buffer, in transitions.", min=1)] = 1_000_000,
    steps: Annotated[int, Option(help="Number of steps to play or to read.", min=64)] = 4_000,
    envs: Annotated[int, Option(help="Number of environments.", min=1)] = 1,
    stack: Annotated[int | None, Option(help="Frames per observation; by default 4 for Atari, else 1.", min=1)] = None,
    policy: Annotated[
        Path | None, Option(help="A saved model that chooses actions; by default, they are random.")
    ] = None,
    algorithm: Annotated[str, Option(help="The algorithm that has saved the policy, such as DQN or PPO.")] = "",
    prefer: Annotated[str, Option(help="What matters most: speed, balanced or memory.")] = "speed",
    codec: Annotated[
        list[str] | None, Option(help="Try this codec only; may be repeated.", autocompletion=lambda: list(names()))
    ] = None,
    batch_size: Annotated[int, Option(help="Number of transitions in a batch.", min=1)] = 32,
    seed: Annotated[int, Option(help="Seed of the environments and of random actions.")] = 0,
    plot: Annotated[Path | None, Option(help="Plot memory against time to this .png or .svg file.")] = None,
    json: Annotated[bool, Option("--json", help="Print JSON instead of tables.")] = False,
    quick: Annotated[bool, Option("--quick", help="Few steps and few timings, for a rough answer.")] = False,
) -> None:
    """Try every installed codec, level and layout on the observations of an environment, and recommend one.

    The environment is made as for training with Stable-Baselines3: Atari games preprocessed and stacked, images
    channels first. Everything is measured beside Stable-Baselines3's own buffer, in the same run.

    Examples:

        sb3-buffers advise ALE/MsPacman-v5 --size 1000000

        sb3-buffers advise CartPole-v1

        sb3-buffers advise observations.npz --prefer memory --plot memory.png
    """
    from sb3_extra_buffers.advisor import advise as measure
    from sb3_extra_buffers.advisor import check_preference, draw, specs

    steps = min(steps, _QUICK_STEPS) if quick else steps
    # Refuse before a minute of work, not after it.
    check_preference(prefer)
    specs(codec)
    if plot is not None:
        _check_plot(plot)
    stream = _stream(source, steps, envs, stack, seed, policy, algorithm)
    rounds: dict[str, Any] = {"rounds": _QUICK_ROUNDS} if quick else {}
    advice = measure(stream, size, prefer=prefer, codecs=codec, batch_size=batch_size, **rounds)
    if json:
        print_json(advice.as_json())
    else:
        _show(advice)
    if quick and not json:
        print("--quick: so few transitions say little about time, and make long chunks (prefer=memory) look too large.")
    if plot is not None:  # after the results were printed, in case the disk is full
        draw(advice, plot)
        if not json:
            print(f"Drawn to {plot}.")
    for one in advice.failed:
        if codec is not None and one.name.rpartition(" ")[2] not in (AUTO, *PREFERENCES):  # the user named it
            allowed = f"it fails on these observations ({one.reason.rstrip('.')})"
            raise ParameterError("advise", "codec", one.name, allowed, "Leave it out, or report this to its author.")


def _stream(
    source: str, steps: int, envs: int, stack: int | None, seed: int, policy: Path | None, algorithm: str
) -> Stream:
    from sb3_extra_buffers.advisor import make, play, read

    path = Path(source)
    if path.is_file() or path.suffix in _FILES or (path.is_dir() and os.sep in source):
        given = {"stack": stack, "policy": policy, "algorithm": algorithm, "envs": None if envs == 1 else envs}
        for name, value in given.items():
            if value:
                allowed = "it is for environments; the observations of a file are used as they are"
                raise ParameterError("advise", name, value, allowed, "Leave it out.")
        return read(path, steps)
    if algorithm and policy is None:
        raise ParameterError("advise", "algorithm", algorithm, "it is for --policy, which is missing")
    env = make(source, envs, stack, seed)
    model = None if policy is None else _load_policy(policy, algorithm, env)
    return play(env, source, max(64, steps // envs), model, seed)


def _check_plot(path: Path) -> None:
    """Refuse a plot that could not be written."""
    from matplotlib.backend_bases import FigureCanvasBase

    endings = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:].lower() not in endings:
        raise ParameterError("advise", "plot", str(path), f"its name must end in one of: .{', .'.join(endings)}")
    if not path.parent.is_dir():
        raise FileMissingError(str(path.parent), "Make the folder first.")
    if path.is_dir():
        raise ParameterError("advise", "plot", str(path), "it is a folder", "Give the name of a file.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise FileWriteError(str(path), "advise --plot", "permission denied", "Give a file in a folder of yours.")


def _load_policy(policy: Path, algorithm: str, env: VecEnv) -> PolicyPredictor:
    """Load a saved model, and refuse one for other spaces than those of the environment."""
    kinds = _algorithms()
    kind = kinds.get(algorithm.lower())
    if kind is None:
        allowed = f"it must be the one that has saved the policy: {', '.join(one.__name__ for one in kinds.values())}"
        raise ParameterError("advise", "algorithm", algorithm, allowed)
    if not policy.exists() and not policy.with_suffix(".zip").exists():
        raise FileMissingError(str(policy))
    try:
        model: PolicyPredictor = kind.load(policy, device="cpu")
    except Exception as error:  # any error of Stable-Baselines3
        hint = "Name the algorithm that has saved it with --algorithm."
        problem = f"a file that it cannot load ({type(error).__name__}: {error})"
        raise FileContentError(str(policy), f"a policy of {kind.__name__}", problem, hint) from error
    for name in ("observation_space", "action_space"):
        expected, found = getattr(env, name), getattr(model, name)
        if found != expected:
            # In one line, also if a space has many bounds.
            asked, saved = (" ".join(str(space).split()) for space in (expected, found))
            hint = "Use the environment that it was trained in."
            raise FileContentError(str(policy), f"a policy with {name} {asked}", f"one with {saved}", hint)
    return model


def _algorithms() -> dict[str, Any]:
    """All algorithms, by name in lower case."""
    modules = [import_module(name) for name in ("stable_baselines3", "sb3_contrib") if find_spec(name) is not None]
    parts = (part for module in modules for part in vars(module).items())
    return {name.lower(): part for name, part in parts if hasattr(part, "learn")}


def _show(advice: Advice) -> None:
    """Print the measurements and the recommendation."""
    from sb3_extra_buffers.advisor.advice import TOO_SMALL

    out, stream = console(), advice.stream
    tried = "no codec worked" if advice.failed else "no codec tried"
    if advice.screened:
        tried = f"{len(advice.screened)} codecs and levels tried"
    elif not advice.tried:
        tried = TOO_SMALL
    out.print(f"{stream.label}: {stream.observation_space}")
    out.print(f"{stream.transitions:,} transitions, {tried}, {len(advice.measured)} buffers measured.\n")
    out.print(_table(advice))
    size, batch = f"{advice.transitions:,} transitions", f"sample({advice.batch_size})"
    out.print(f"memory: of {size}, extrapolated. In brackets: times Stable-Baselines3's own.")
    out.print(f"time: of add and, every 4th step, {batch}, relative to Stable-Baselines3's.")
    out.print("*: nothing else is better in both memory and time.")
    for reason in dict.fromkeys(one.reason for one in advice.dropped):
        names = [str(one.spec) for one in advice.dropped if one.reason == reason]
        several = f"{len(names)} codecs and levels" if len(names) > _MAX_NAMES else ", ".join(names)
        out.print(f"In no buffer: {several}: {reason}.")
    for one in advice.failed:
        out.print(f"\nFailed: {one.name}: {one.reason}")
    _recommend(out, advice)


def _table(advice: Advice) -> Table:
    from sb3_extra_buffers.advisor.advice import times

    numbers = ("memory", "smaller", "add, us", "sample, ms", "time")
    shown = table("", ("  stored as", *numbers), right=numbers)
    for one in advice.as_json()["measured"]:
        shown.add_row(
            f"{'*' if one['on_pareto_front'] else ' '} {one['name']}",
            readable(one["nbytes"]),
            f"{times(one['times_smaller'])}x",
            f"{one['add_us']:,.1f} ({one['add_to_sb3']:.2f})",
            f"{one['sample_ms']:.3f} ({one['sample_to_sb3']:.2f})",
            f"{one['cost_to_sb3']:.2f}",
            style="bold green" if one["name"] == advice.verdict.chosen.candidate.name else "",
        )
    shown.columns[0].no_wrap = True  # numbers without names are useless on a narrow terminal
    return shown


def _recommend(out: Console, advice: Advice) -> None:
    out.print()
    if not advice.verdict.compress:
        out.print(f"{advice.verdict.reason} Keep Stable-Baselines3's own {advice.stream.plain_class.__name__}.")
        return
    out.print(f"Recommended: {advice.verdict.chosen.candidate.name}. {advice.verdict.reason}\n")
    for line in advice.lines:
        out.print(f"    {line}", soft_wrap=True)
    if 0 < (memory := _memory()) < advice.verdict.chosen.nbytes(advice.transitions):
        in_a_file = advice.lines_in_a_file("...")  # for a folder of the user
        file = "keep it in a file" if in_a_file else "install a heap that stores in files (sb3-buffers heaps)"
        out.print(f"\nThis machine has {readable(memory)} of memory: choose a smaller buffer, or {file}.\n")
        for line in in_a_file:
            out.print(f"    {line}", soft_wrap=True)


def _memory() -> int:
    """Memory of this machine in bytes; 0 if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0

"""``advise``: try every codec and layout on real observations, and print what to use."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sb3_extra_buffers.cli.console import print_json
from sb3_extra_buffers.codecs import names
from sb3_extra_buffers.compressed.report import readable
from sb3_extra_buffers.errors import FileContentError, FileMissingError, FileWriteError, ParameterError
from sb3_extra_buffers.stores import AUTO, PREFERENCES

if TYPE_CHECKING:
    from stable_baselines3.common.type_aliases import PolicyPredictor
    from stable_baselines3.common.vec_env import VecEnv

    from sb3_extra_buffers.advisor import Stream

_QUICK_STEPS, _QUICK_ROUNDS = 500, 5
#: Suffixes of files with observations; any other source that is no file is an environment.
_FILES = {".npz", ".npy", ".safetensors", ".rec", ".recording"}


def advise(
    source: Annotated[
        str, Argument(help="An environment such as ALE/MsPacman-v5, a recording, or an .npz or .npy file.")
    ] = "",
    make: Annotated[
        str,
        Option(help="MODULE:FUNCTION of yours: a wrapper for source, or without source, what makes the environment."),
    ] = "",
    size: Annotated[int, Option(help="The planned size of the buffer, in transitions.", min=1)] = 1_000_000,
    steps: Annotated[int, Option(help="Number of steps to play or to read.", min=64)] = 4_000,
    envs: Annotated[int, Option(help="Number of environments.", min=1)] = 1,
    stack: Annotated[int | None, Option(help="Frames per observation; by default 4 for Atari, else 1.", min=1)] = None,
    policy: Annotated[
        Path | None,
        Option(
            help="A saved model that chooses actions; by default, they are random. Loading it unpickles, which runs "
            "code that the file names: use only files that you trust."
        ),
    ] = None,
    algorithm: Annotated[str, Option(help="The algorithm that has saved the policy, such as DQN or PPO.")] = "",
    prefer: Annotated[str, Option(help="What matters most: speed, balanced or memory.")] = "balanced",
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
        sb3-buffers advise ALE/MsPacman-v5 --make my_wrappers:Crop
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
    stream = _stream(source, make, steps, envs, stack, seed, policy, algorithm)
    rounds: dict[str, Any] = {"rounds": _QUICK_ROUNDS} if quick else {}
    advice = measure(stream, size, prefer=prefer, codecs=codec, batch_size=batch_size, **rounds)
    if json:
        print_json(advice.as_json())
    else:
        print(advice)
        if advice.verdict.compress and 0 < (memory := _memory()) < advice.verdict.chosen.nbytes(size):
            in_a_file = advice.lines_in_a_file("...")  # for a folder of the user
            file = "keep it in a file" if in_a_file else "install a heap that stores in files (sb3-buffers heaps)"
            print(f"\nThis machine has {readable(memory)} of memory: choose a smaller buffer, or {file}.\n")
            print("".join(f"    {line}\n" for line in in_a_file), end="")
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
    source: str, made_by: str, steps: int, envs: int, stack: int | None, seed: int, policy: Path | None, algorithm: str
) -> Stream:
    from sb3_extra_buffers.advisor import make, play, read

    path = Path(source)
    if source and (path.is_file() or path.suffix in _FILES or (path.is_dir() and os.sep in source)):
        given = {"make": made_by, "stack": stack, "policy": policy, "algorithm": algorithm, "envs": envs - 1 and envs}
        for name, value in given.items():
            if value:
                allowed = "it is for environments; the observations of a file are used as they are"
                raise ParameterError("advise", name, value, allowed, "Leave it out.")
        return read(path, steps)
    if not (source or made_by):
        allowed = "there must be an environment, a file, or --make"
        raise ParameterError("advise", "source", source, allowed, "Usage: sb3-buffers advise SOURCE, as in CartPole-v1")
    if algorithm and policy is None:
        raise ParameterError("advise", "algorithm", algorithm, "it is for --policy, which is missing")
    env = make(_imported(made_by, source) if made_by else source, envs, stack, seed)
    model = None if policy is None else _load_policy(policy, algorithm, env)
    return play(env, " ".join(filter(None, (source, made_by))), max(64, steps // env.num_envs), model, seed)


def _imported(name: str, source: str) -> Callable[[], Any]:
    """The function ``module:function``; of an environment that is named, it makes another one."""
    import gymnasium

    from sb3_extra_buffers.advisor.stream import look_up

    module, _, function = name.partition(":")
    sys.path.insert(0, str(Path.cwd()))  # as python -m does; the function may import more when it is called
    try:
        found = getattr(import_module(module), function)
        signature(found).bind(*filter(None, [source]))  # a wrapper takes the environment, other functions nothing
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        allowed = f"it must be MODULE:FUNCTION, to be imported from here or from what is installed ({error})"
        usage = f"A wrapper follows its environment: sb3-buffers advise CartPole-v1 --make {name}"
        raise ParameterError("advise", "make", name, allowed, usage * isinstance(error, TypeError)) from error
    if not source:
        return found  # type: ignore[no-any-return]
    look_up(source)  # imports the package that registers it
    return lambda: found(gymnasium.make(source))


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
    modules = [import_module(name) for name in ("stable_baselines3", "sb3_contrib") if find_spec(name) is not None]
    parts = (part for module in modules for part in vars(module).items())
    kinds = {name.lower(): part for name, part in parts if hasattr(part, "learn")}
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


def _memory() -> int:
    """Memory of this machine in bytes; 0 if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0

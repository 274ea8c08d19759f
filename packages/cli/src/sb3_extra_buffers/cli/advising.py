"""``advise``: try everything on real observations, and say what to use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sb3_extra_buffers.cli.console import print_json
from sb3_extra_buffers.cli.policies import load_policy
from sb3_extra_buffers.cli.presenting import show
from sb3_extra_buffers.codecs import names
from sb3_extra_buffers.errors import FileMissingError, FileWriteError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from sb3_extra_buffers.advisor import Advice, Stream

_QUICK_STEPS, _QUICK_ROUNDS = 500, 5
#: Endings of files that observations are read from; what has another one and is not there is an environment.
_FILES = {".npz", ".npy", ".safetensors", ".rec", ".recording"}


def advise(
    source: Annotated[
        str, typer.Argument(help="An environment such as ALE/MsPacman-v5, a recording, or an .npz or .npy file.")
    ],
    size: Annotated[int, typer.Option(help="The size of the buffer that you plan, in transitions.", min=1)] = 1_000_000,
    steps: Annotated[int, typer.Option(help="How long to play, or how much to read.", min=64)] = 4_000,
    envs: Annotated[int, typer.Option(help="How many environments.", min=1)] = 1,
    stack: Annotated[
        int | None, typer.Option(help="Frames per observation; by default 4 for Atari, else 1.", min=1)
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="A saved model that plays; by default, actions are random.")
    ] = None,
    algorithm: Annotated[str, typer.Option(help="Which algorithm the policy was saved by, such as DQN or PPO.")] = "",
    prefer: Annotated[str, typer.Option(help="What matters: speed, balanced or memory.")] = "speed",
    codec: Annotated[
        list[str] | None,
        typer.Option(help="Try this codec only; may be repeated.", autocompletion=lambda: list(names())),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="How many transitions a batch has.", min=1)] = 32,
    seed: Annotated[int, typer.Option(help="Of environment and random actions.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw memory against time to this .png or .svg file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Play little and time little: a rough answer.")] = False,
) -> None:
    """Try every installed codec, level and layout on the observations of an environment, and say what to use.

    The environment is played as Stable-Baselines3 would have it: Atari games preprocessed and stacked, images channels
    first. All is measured beside Stable-Baselines3's own buffer, in the same run.

    Examples:

        sb3-buffers advise ALE/MsPacman-v5 --size 1000000

        sb3-buffers advise CartPole-v1

        sb3-buffers advise observations.npz --prefer memory --plot memory.png
    """
    from sb3_extra_buffers.advisor import advise as try_everything
    from sb3_extra_buffers.advisor import check_preference, draw, specs

    steps = min(steps, _QUICK_STEPS) if quick else steps
    # Better now than after a minute of work.
    check_preference(prefer)
    specs(codec)
    if plot is not None:
        _check_plot(plot)
    stream = _stream(source, steps, envs, stack, seed, policy, algorithm)
    rounds: dict[str, Any] = {"rounds": _QUICK_ROUNDS} if quick else {}
    advice = try_everything(stream, size, prefer=prefer, codecs=codec, batch_size=batch_size, **rounds)
    if json:
        print_json(advice.as_json())
    else:
        show(advice)
    if quick and not json:
        print("--quick: so few transitions say little about time, and make long chunks (prefer=memory) look too large.")
    if plot is not None:  # after all that was found is told, which a full disk must not take away
        draw(advice, plot)
        if not json:
            print(f"Drawn to {plot}.")
    if codec is not None:
        _check_failed(advice)


def _check_failed(advice: Advice) -> None:
    """A codec that was asked for and fails is no success, whatever else was found."""
    from sb3_extra_buffers.stores import AUTO, PREFERENCES

    for one in advice.failed:
        if one.name.rpartition(" ")[2] not in (AUTO, *PREFERENCES):  # which nobody has asked for
            allowed = f"it fails on these observations ({one.reason.rstrip('.')})"
            raise ParameterError("advise", "codec", one.name, allowed, "Leave it out, or show this to who made it.")


def _stream(
    source: str, steps: int, envs: int, stack: int | None, seed: int, policy: Path | None, algorithm: str
) -> Stream:
    from sb3_extra_buffers.advisor import make, play, read

    path = Path(source)
    if path.is_file() or path.suffix in _FILES or (path.is_dir() and os.sep in source):
        given = {"stack": stack, "policy": policy, "algorithm": algorithm, "envs": None if envs == 1 else envs}
        for name, value in given.items():
            if value:
                allowed = "a file has its observations as they are; this is for environments"
                raise ParameterError("advise", name, value, allowed, "Leave it out.")
        return read(path, steps)
    if algorithm and policy is None:
        raise ParameterError("advise", "algorithm", algorithm, "without --policy there is nothing that it has saved")
    env = make(source, envs, stack, seed)
    model = None if policy is None else load_policy(policy, algorithm, env)
    return play(env, source, max(64, steps // envs), model, seed)


def _check_plot(path: Path) -> None:
    """Refuse a picture that could not be written."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise MissingExtraError("A plot", "matplotlib", "cli") from error
    endings = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:].lower() not in endings:
        raise ParameterError("advise", "plot", str(path), f"its name must end in one of: .{', .'.join(endings)}")
    if not path.parent.is_dir():
        raise FileMissingError(str(path.parent), "Make the folder first.")
    if path.is_dir():
        raise ParameterError("advise", "plot", str(path), "it is a folder", "Give the name of a file.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        hint = "Give a file in a folder of yours."
        raise FileWriteError(str(path), "advise --plot", "permission denied", hint)

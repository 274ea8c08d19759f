"""Which codec and layout suit which observations? See ``python -m benchmarks.choosing --help``.

Several kinds of observations are played at random and given to the advisor, as ``sb3-buffers advise`` does. The results
are a page with tables, a picture for each kind, and JSON.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecTransposeImage

from benchmarks._lib.console import positive
from benchmarks._lib.doom import DoomEnv
from benchmarks._lib.machine import machine_info
from sb3_extra_buffers.advisor import Advice, advise, make, picture, play
from sb3_extra_buffers.compressed.report import readable


class Palette(gymnasium.ObservationWrapper[NDArray[np.uint8], np.int64, NDArray[np.uint8]]):
    """The screen of an Atari game as indices into the palette of the console."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Box(0, 255, (210, 160, 1), np.uint8)

    def observation(self, observation: NDArray[np.uint8]) -> NDArray[np.uint8]:
        screen: NDArray[np.uint8] = self.unwrapped.ale.getScreen()  # type: ignore[attr-defined]
        return screen.reshape(*observation.shape[:2], 1)


def _images(make_env: Callable[[], gymnasium.Env[Any, Any]]) -> VecEnv:
    return VecTransposeImage(DummyVecEnv([make_env]))


#: Kinds of observations by name: their title, and an environment.
KINDS: dict[str, tuple[str, Callable[[], VecEnv]]] = {
    "gray": ("MsPacman, gray, four frames of 84 x 84 stacked", lambda: make("ALE/MsPacman-v5")),
    "palette": (
        "MsPacman, palette of the console, 210 x 160",
        lambda: _images(lambda: Palette(gymnasium.make("ale_py:ALE/MsPacman-v5"))),
    ),
    "rgb": ("Doom, RGB, first person, 120 x 160", lambda: _images(lambda: DoomEnv(observe="rgb"))),
    "masks": ("Doom, segmentation masks, 120 x 160", lambda: _images(lambda: DoomEnv(observe="mask"))),
    "vector": ("Pendulum, three floats", lambda: make("Pendulum-v1")),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Play every kind, ask the advisor, and write its results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.choosing", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS), help="default: all of them")
    parser.add_argument("--steps", type=positive, default=4_000, help="steps of each kind (default: %(default)s)")
    parser.add_argument(
        "--size", type=positive, default=1_000_000, help="planned size of the buffer (default: %(default)s)"
    )
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw pareto-KIND.svg there")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write tables as Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures and the machine")
    parser.add_argument("--redraw", type=Path, metavar="FILE", help="draw the pictures again from a JSON file")
    parser.add_argument("--quick", action="store_true", help="a short run with a few steps of each kind")
    options = parser.parse_args(arguments)
    command = shlex.join(["python", "-m", "benchmarks.choosing", *(sys.argv[1:] if arguments is None else arguments)])
    if options.redraw is not None:
        if options.pictures is None:
            parser.error("--redraw needs --pictures")
        draw(json.loads(options.redraw.read_text(encoding="utf-8"))["kinds"], options.pictures)
        return
    found: dict[str, Advice] = {}
    for kind in options.kinds:
        title, environment = KINDS[kind]
        stream = play(environment(), title, 100 if options.quick else options.steps)
        short: dict[str, Any] = {"rounds": 2, "codecs": ["rle", "zstd/1"]} if options.quick else {}
        found[kind] = advise(stream, options.size, **short)
        print(table(found[kind]))
        if options.pictures is not None:
            draw({kind: found[kind].as_json()}, options.pictures)
    if options.page is not None:
        options.page.write_text(page(found, options.pictures is not None, command), encoding="utf-8")
    if options.json is not None:
        content = {"machine": machine_info(), "kinds": {kind: advice.as_json() for kind, advice in found.items()}}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def draw(kinds: Mapping[str, Any], folder: Path) -> None:
    """Draw a picture for each kind of observations.

    :param kinds: results of the advisor, as JSON
    :param folder: folder of the pictures
    """
    for kind, figures in kinds.items():
        picture(figures).savefig(folder / f"pareto-{kind}.svg")


def table(advice: Advice) -> str:
    """The figures as a Markdown table."""
    columns = ("stored as", f"memory of {advice.transitions:,}", "times smaller", "add", "sample(32)")
    lines = ["| " + " | ".join(columns) + " |", "| --- | ---: | ---: | ---: | ---: |"]
    plain = advice.plain
    for one in advice.ranked:
        nbytes = one.nbytes(advice.transitions)
        factor = plain.nbytes(advice.transitions) / nbytes
        name = f"**{one.candidate.name}**" if one is advice.verdict.chosen else one.candidate.name
        ratios = f"{one.add_s / plain.add_s:.2f} | {one.sample_s / plain.sample_s:.2f}"
        lines.append(f"| {name} | {readable(nbytes)} | {factor:,.1f} | {ratios} |")
    return "\n".join([f"## {advice.stream.label}", "", advice.verdict.reason, "", *lines, ""])


def page(found: dict[str, Advice], has_pictures: bool, command: str) -> str:
    """All kinds as a page of the documentation."""
    machine = machine_info()
    where = f"{machine['usable_cpus']} cores of {machine['processor']}, Python {machine['python']}"
    advice = next(iter(found.values()))
    read = (
        f"from the root of a checkout. Memory is extrapolated to {advice.transitions:,} transitions, from "
        f"{advice.stream.transitions:,} that were played; [frames](../frames.md#what-it-costs) have been measured at "
        "one million, too. Times are factors to Stable-Baselines3's own buffer in the same run. The sentence above "
        "each table is about all that a buffer does while DQN trains: an `add`, and a batch for every fourth of them. "
        "Bold is what the advisor recommends; `auto` is what you get without asking for anything. For an environment "
        "of your own:"
    )
    parts = [
        "# What suits which observations",
        "",
        f"Random play, one environment, on {where}. Made by",
        "",
        "```sh",
        command,
        "```",
        "",
        read,
        "",
        "```sh",
        f"sb3-buffers advise ALE/MsPacman-v5 --size {advice.transitions} --plot memory.svg",
        "```",
        "",
    ]
    for kind, advice in found.items():
        parts.append(table(advice))
        if has_pictures:
            parts += [f"![{advice.stream.label}: memory against time](../images/pareto-{kind}.svg)", ""]
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    main()

"""How fast and how small are buffers on a device, on real frames? See ``python -m benchmarks.gpu --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import stable_baselines3
import torch

from benchmarks._lib.atari import stacked_frames
from benchmarks._lib.buffer_figures import Settings, Timings
from benchmarks._lib.console import add_json_option, counted, positive, progress_bar, table_console
from benchmarks._lib.gpu_figures import (
    CONTENDERS,
    ENVIRONMENTS,
    Memory,
    draw_device,
    goals,
    gpu_table,
    measure_on_device,
)
from benchmarks._lib.machine import machine_info
from benchmarks._lib.plotting import check_plot_option
from sb3_extra_buffers.errors import ExtraBuffersError
from sb3_extra_buffers.gpu_buffers.devices import as_device

#: Fewer would repeat within one batch.
_FEWEST_FRAMES = 256


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, measure, print a table and the goals, draw and write the figures if asked to."""
    options = _options(arguments)
    # Tensors are made by one memcpy each; a second thread of torch only adds noise.
    torch.set_num_threads(1)
    quick = options.quick
    transitions = options.transitions or (2_000 if quick else 20_000)
    settings = Settings(transitions, options.rounds or (15 if quick else 200), options.threads)
    try:
        device = as_device(options.device)
        timings, memory = _measured(options, settings, device)
    except ExtraBuffersError as error:
        sys.exit(f"error: {error}")
    console = table_console()
    title = f"{options.game} on {device}, {transitions:,} transitions of 4 x 84 x 84 bytes"
    console.print(gpu_table(title, timings, memory))
    if not quick:  # small buffers and few rounds do not show whether goals are reached
        for line in goals(timings, memory):
            console.print(line, highlight=False)
    if options.plot is not None:
        draw_device(timings, memory, title, options.plot)
    if options.json is not None:
        content = {
            "machine": machine_info(),
            "settings": {
                "game": options.game,
                "device": str(device),
                "device_name": torch.cuda.get_device_name(device) if device.type == "cuda" else str(device),
                "transitions": transitions,
                "rounds": settings.rounds,
                "decoding_threads": settings.threads,
                "torch_threads": torch.get_num_threads(),
                "torch": torch.__version__,
                "stable_baselines3": stable_baselines3.__version__,
            },
            "figures": [_figures(name, timings, memory.get(name)) for name in timings.ratios],
        }
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _measured(
    options: argparse.Namespace, settings: Settings, device: torch.device
) -> tuple[Timings, dict[str, Memory]]:
    with progress_bar() as progress:
        frames = options.frames or max(settings.transitions, _FEWEST_FRAMES)
        with counted(progress, f"Playing {options.game}", frames) as report:
            played = stacked_frames(options.game, frames, progress=report)
        observations = np.ascontiguousarray(played.transpose(0, 3, 1, 2))
        task = progress.add_task("Measuring", total=len(ENVIRONMENTS) * (len(options.codecs) + 2) + 2)
        return measure_on_device(
            observations,
            options.codecs,
            settings,
            device,
            lambda text: progress.update(task, description=text, advance=1, refresh=True),
        )


def _figures(name: str, timings: Timings, memory: Memory | None) -> dict[str, Any]:
    return {
        "codec": name,
        "times_smaller": timings.ratios[name],
        "memory": None if memory is None else memory.as_json(),
        "seconds": {operation: by_codec[name] for operation, by_codec in timings.seconds.items()},
        "to_sb3": {operation: timings.to_sb3(operation, name) for operation in timings.seconds},
    }


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description="Measure replay buffers on a torch device beside Stable-Baselines3's, on Atari frames.",
        epilog="example: python -m benchmarks.gpu --device cuda --plot gpu.svg --json gpu.json",
    )
    parser.add_argument(
        "--device", default="auto", help="cpu, cuda, mps, … (default: auto, which is cuda if available)"
    )
    parser.add_argument("--game", default="MsPacman", help="name of an ALE game (default: %(default)s)")
    codecs = f"codecs, and frames for the frame layout (default: {' '.join(CONTENDERS)})"
    parser.add_argument("--codecs", nargs="+", metavar="CODEC", default=list(CONTENDERS), help=codecs)
    parser.add_argument("--transitions", type=positive, help="size of the buffers (default: 20000)")
    parser.add_argument("--frames", type=positive, help="frames to play (default: as --transitions)")
    parser.add_argument("--rounds", type=positive, help="repetitions of each operation (default: 200)")
    # With two threads, the load of the machine would count: a batch waits for the slower thread.
    parser.add_argument("--threads", type=positive, default=1, help="threads that decode on the host (default: 1)")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures as .svg or .png")
    parser.add_argument("--quick", action="store_true", help="a short run of half a minute, without the goals")
    add_json_option(parser)
    options = parser.parse_args(arguments)
    if options.frames is not None and options.frames < _FEWEST_FRAMES:
        parser.error(f"--frames {options.frames}: it must be at least {_FEWEST_FRAMES}")
    if options.plot is not None:
        check_plot_option(parser, options.plot)
    return options


if __name__ == "__main__":
    main()

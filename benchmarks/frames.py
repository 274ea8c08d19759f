"""How small and how fast is the frame store on real frames? See ``python -m benchmarks.frames --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks._lib.buffer_figures import Settings, buffer_tables, measure_game
from benchmarks._lib.buffers import FRAMES, SB3
from benchmarks._lib.console import add_json_option, positive, table_console
from benchmarks._lib.frame_growth import draw_growth, measure_growth
from benchmarks._lib.machine import machine_info, thread_scaling
from benchmarks.buffers import figures
from sb3_extra_buffers.errors import ExtraBuffersError
from sb3_extra_buffers.stores import PREFERENCES

_CONTENDERS = [*(f"{FRAMES}{prefer}" for prefer in PREFERENCES), f"{FRAMES}speed/numpy"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, measure, print tables, draw, and write the figures if ``--json`` is given."""
    options = _options(arguments)
    # Tensors are made by one memcpy each; a second thread of torch only adds noise.
    torch.set_num_threads(1)
    console = table_console()
    quick = options.quick
    transitions = options.transitions or (2_000 if quick else 50_000)
    settings = Settings(transitions, options.rounds or (15 if quick else 200), threads=1)
    content: dict[str, object] = {"machine": machine_info(), "games": {}, "growth": []}
    try:
        for game in options.games:
            timings, resident = measure_game(game, _CONTENDERS, settings, options.frames or transitions, transitions)
            console.print(buffer_tables(f"{game}, stacks of 4 frames of 84 x 84 bytes", timings, resident, transitions))
            for name, nbytes in resident.items():
                share = resident[SB3] / nbytes
                console.print(
                    f"{name:<22} {nbytes / transitions:>9,.0f} bytes per transition, 1/{share:.0f}", highlight=False
                )
            games = content["games"]
            assert isinstance(games, dict)
            games[game] = [figures(name, timings, resident[name]) for name in resident]
        sizes = options.growth or ([1_000, 4_000] if quick else [10_000, 30_000, 100_000, 300_000, 1_000_000])
        growth = measure_growth(options.games[0], sizes, settings.rounds)
    except ExtraBuffersError as error:
        sys.exit(f"error: {error}")
    content["growth"] = [point.as_json() for point in growth]
    for point in growth:
        console.print(str(point), highlight=False)
    console.print(f"Speed-up of two threads of plain zlib: {thread_scaling():.2f}.", highlight=False)
    if options.plot is not None:
        draw_growth(growth, options.games[0], options.plot)
    if options.json is not None:
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.frames",
        description="Measure the frame layout beside Stable-Baselines3's buffers, and its cost by size.",
        epilog="example: python -m benchmarks.frames --games MsPacman Pong --plot frames.svg --json frames.json",
    )
    parser.add_argument("--games", nargs="+", default=["MsPacman", "Pong"], help="ALE games (default: %(default)s)")
    parser.add_argument("--transitions", type=positive, help="size of the buffers (default: 50000)")
    parser.add_argument("--frames", type=positive, help="frames to play (default: as --transitions)")
    parser.add_argument("--rounds", type=positive, help="repetitions of each operation (default: 200)")
    parser.add_argument(
        "--growth", nargs="+", type=positive, metavar="N", help="sizes in transitions (default: 10000 to 1000000)"
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the growth as .svg or .png")
    parser.add_argument("--quick", action="store_true", help="a short run of about a minute")
    add_json_option(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

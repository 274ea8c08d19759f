"""How fast and how small is each codec on real Atari frames? See ``python -m benchmarks.codecs --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from benchmarks._lib.atari import stacked_frames
from benchmarks._lib.codec_figures import CELLS, CodecFigures, codec_table, measure_codec
from benchmarks._lib.console import add_json_option, counted, positive, progress_bar, table_console
from benchmarks._lib.machine import machine_info, thread_scaling
from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import ExtraBuffersError
from sb3_extra_buffers.memory import Bytes

# gzip at its default level 9 needs about 2 ms to encode a cell, which is minutes over all rounds.
DEFAULT_CODECS = (
    *("none", "rle", "rle-jit", "gzip/1", "igzip/0", "igzip/1"),
    *("lz4-frame/0", "lz4-block/0", "lz4-block/9", "zstd/-5", "zstd/1", "zstd/3"),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, measure, print one table per game and memory order, and write the figures if ``--json`` is given."""
    options = _options(arguments)
    rounds = options.rounds or (2 if options.quick else 25)
    frames = max(CELLS, options.frames or (CELLS if options.quick else 1024))
    games = options.games or (["MsPacman"] if options.quick else ["MsPacman", "Pong"])
    orders = [options.order] if options.order else ["hwc"] if options.quick else ["hwc", "chw"]
    console = table_console()
    try:
        specs, missing = _selected(options.codecs)
        cell = codecs.CellSpec(np.uint8, 84 * 84 * 4)
        bound = [codecs.bind(spec, cell) for spec in specs]
        if missing:
            console.print(f"Skipped, not installed: {', '.join(missing)}", highlight=False, markup=False)
        results: list[dict[str, Any]] = []
        with progress_bar() as progress:
            for game in games:
                with counted(progress, f"Playing {game}", frames) as report:
                    observations = stacked_frames(game, frames, progress=report)
                for order in orders:
                    figures = _measure(bound, _rows(observations, order), rounds, f"{game} {order}", progress)
                    results.append({"game": game, "order": order, "figures": figures})
    except ExtraBuffersError as error:
        sys.exit(f"error: {error}")
    scaling = thread_scaling()
    for result in results:
        title = f"{result['game']}, memory order {result['order'].upper()}, cells of {cell.nbytes:,} bytes"
        console.print(codec_table(title, result["figures"]))
    console.print(f"Speed-up of two threads of plain zlib: {scaling:.2f}.", highlight=False)
    if options.json is not None:
        settings = {"rounds": rounds, "frames": frames, "cells_per_call": CELLS, "skipped": missing}
        tables = [{**result, "figures": [one.to_json() for one in result["figures"]]} for result in results]
        content = {"machine": machine_info(), "two_threads_of_zlib": scaling, "settings": settings, "tables": tables}
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.codecs",
        description="Measure size and speed of codecs on Atari frames: 84 x 84, four stacked, played at random.",
        epilog="example: python -m benchmarks.codecs --games Breakout --order hwc --codecs zstd/3 lz4-block/0 rle-jit",
    )
    parser.add_argument("--games", nargs="+", metavar="GAME", help="names of ALE games (default: MsPacman Pong)")
    parser.add_argument("--order", choices=("hwc", "chw"), help="memory order of the frames (default: both)")
    default = f"those installed of {' '.join(DEFAULT_CODECS)}, and any other installed codec at its default level"
    parser.add_argument("--codecs", nargs="+", metavar="CODEC", help=f"codecs with levels (default: {default})")
    parser.add_argument("--rounds", type=positive, help="repetitions of each variant (default: 25)")
    parser.add_argument("--frames", type=positive, help=f"number of observations, at least {CELLS} (default: 1024)")
    quick = "a short run of seconds: 2 rounds, 256 frames, MsPacman and hwc; other options still apply"
    parser.add_argument("--quick", action="store_true", help=quick)
    add_json_option(parser)
    return parser.parse_args(arguments)


def _selected(requested: list[str] | None) -> tuple[list[codecs.CodecSpec], list[str]]:
    """Codecs to measure, and codecs of the default list that are not installed. Requested ones are not skipped."""
    if requested is not None:
        return [codecs.parse(text) for text in requested], []
    installed, listed = codecs.names(), [codecs.parse(text) for text in DEFAULT_CODECS]
    others = set(installed) - {spec.name for spec in listed}
    specs = [spec for spec in listed if spec.name in installed] + [codecs.CodecSpec(name) for name in sorted(others)]
    return specs, [str(spec) for spec in listed if spec.name not in installed]


def _rows(observations: NDArray[np.uint8], order: str) -> Bytes:
    if order == "chw":
        observations = np.ascontiguousarray(observations.transpose(0, 3, 1, 2))
    return observations.reshape(len(observations), -1)


def _measure(bound: list[codecs.Codec], rows: Bytes, rounds: int, label: str, progress: Progress) -> list[CodecFigures]:
    picks = np.random.default_rng(0).integers(len(rows), size=CELLS)
    task, figures = progress.add_task(label, total=len(bound)), []
    for codec in bound:
        progress.update(task, description=f"{label} {codec.spec}", refresh=True)
        figures.append(measure_codec(codec, rows, picks, rounds))
        progress.update(task, advance=1, refresh=True)
    progress.remove_task(task)
    return figures


if __name__ == "__main__":
    main()

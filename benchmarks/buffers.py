"""How fast and how small are compressed buffers on real frames? See ``python -m benchmarks.buffers --help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

import numpy as np
import stable_baselines3
import torch

from benchmarks._lib.buffer_figures import Settings, Timings, buffer_tables, measure_game
from benchmarks._lib.buffers import CELLS
from benchmarks._lib.console import add_json_option, positive, table_console
from benchmarks._lib.machine import machine_info, thread_scaling
from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import ExtraBuffersError

DEFAULT_CODECS = ("none", "zstd/-3", "zstd/3", "lz4-block/0", "lz4-block", "rle-jit")


def main(arguments: Sequence[str] | None = None) -> None:
    """Play, measure, print tables, and write the figures if ``--json`` is given."""
    options = _options(arguments)
    frames = options.frames or (1024 if options.quick else 4096)
    transitions = options.transitions or (2_000 if options.quick else 20_000)
    settings = Settings(frames, options.rounds or (25 if options.quick else 150), options.threads)
    # Tensors are made by one memcpy each; a second thread of torch only adds noise.
    torch.set_num_threads(1)
    console = table_console()
    try:
        names, missing = _selected(options.codecs)
        if options.cells:
            names = [f"{CELLS}{name}" for name in names]
        if missing:
            console.print(f"Skipped, not installed: {', '.join(missing)}", highlight=False, markup=False)
        timings, resident = measure_game(options.game, names, settings, frames, transitions)
    except ExtraBuffersError as error:
        sys.exit(f"error: {error}")
    scaling = thread_scaling()
    console.print(buffer_tables(f"{options.game}, observations of 4 x 84 x 84 bytes", timings, resident, transitions))
    decoding = "automatic number of threads" if settings.threads is None else f"{settings.threads} threads"
    note = f"torch: 1 thread. Decoding: {decoding}; speed-up of two threads of plain zlib: {scaling:.2f}."
    console.print(note, highlight=False)
    if options.json is not None:
        content = {
            "machine": machine_info(),
            "two_threads_of_zlib": scaling,
            "settings": {
                "game": options.game,
                "buffer_transitions": frames,
                "resident_transitions": transitions,
                "rounds": settings.rounds,
                "decoding_threads": settings.threads,
                "torch_threads": torch.get_num_threads(),
                "torch": torch.__version__,
                "stable_baselines3": stable_baselines3.__version__,
                "skipped": missing,
            },
            "figures": [figures(name, timings, resident[name]) for name in resident],
        }
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.buffers",
        description="Measure size and speed of compressed buffers beside those of Stable-Baselines3, on Atari frames.",
        epilog="example: python -m benchmarks.buffers --game Pong --codecs zstd/-3 gzip/1 igzip/1 lz4-frame/0",
    )
    parser.add_argument("--game", default="MsPacman", help="name of an ALE game (default: %(default)s)")
    default = f"those installed of {' '.join(DEFAULT_CODECS)}"
    parser.add_argument("--codecs", nargs="+", metavar="CODEC", help=f"codecs with levels (default: {default})")
    parser.add_argument("--rounds", type=positive, help="repetitions of each operation (default: 150)")
    parser.add_argument("--frames", type=positive, help="frames to play, and size of the timed buffers (default: 4096)")
    parser.add_argument(
        "--transitions", type=positive, help="size of the buffers whose memory is measured (default: 20000)"
    )
    parser.add_argument("--threads", type=positive, help="threads that decode (default: chosen automatically)")
    parser.add_argument("--cells", action="store_true", help="store whole observations instead of frames")
    quick = "a short run of about a minute: 25 rounds, 1024 frames, 2000 transitions; other options still apply"
    parser.add_argument("--quick", action="store_true", help=quick)
    add_json_option(parser)
    options = parser.parse_args(arguments)
    if options.frames is not None and options.frames < 256:
        parser.error(f"--frames {options.frames}: it must be at least 256")
    return options


def _selected(requested: list[str] | None) -> tuple[list[str], list[str]]:
    """Codecs to measure, with their levels, and codecs of the default list that are not installed."""
    installed, cell = codecs.names(), codecs.CellSpec(np.uint8, 4 * 84 * 84)
    missing = [text for text in DEFAULT_CODECS if requested is None and codecs.parse(text).name not in installed]
    wanted = requested or [text for text in DEFAULT_CODECS if text not in missing]
    return list(dict.fromkeys(str(codecs.bind(text, cell).spec) for text in wanted)), missing


def figures(name: str, timings: Timings, resident: int) -> dict[str, object]:
    """As JSON."""
    return {
        "codec": name,
        "times_smaller": timings.ratios[name],
        "resident_nbytes": resident,
        "seconds": {operation: by_codec[name] for operation, by_codec in timings.seconds.items()},
        "to_sb3": {operation: timings.to_sb3(operation, name) for operation in timings.seconds},
    }


if __name__ == "__main__":
    main()

"""Options that only the examples for buffers on a device have."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

#: Where models are saved and looked for, unless another folder is named.
FOLDER = Path("gpu-pong")


def add_storage_options(parser: argparse.ArgumentParser) -> None:
    """Offer ``--codec``, ``--layout`` and ``--save``."""
    codec = "of the buffer: rle, zstd-5, lz4-block/1, none, auto, … (default: rle; with --layout frames: auto)"
    parser.add_argument("--codec", help=codec)
    layout = "each observation by itself, or each frame of the stacks once (default: cells)"
    parser.add_argument("--layout", choices=("cells", "frames"), help=layout)
    save = "the folder to save to (default: %(default)s)"
    parser.add_argument("--save", type=Path, metavar="FOLDER", default=FOLDER, help=save)


def buffer_kwargs(options: argparse.Namespace) -> dict[str, Any]:
    """What the buffer is given besides what Stable-Baselines3 gives it: the whole difference to other scripts."""
    codec = options.codec or ("auto" if options.layout == "frames" else "rle")
    return {"compression_method": codec, "layout": options.layout}

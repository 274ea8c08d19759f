"""Colours of pictures, the option for them, and how they are written."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito, which colour-blind readers can tell apart; grey is what SB3 does today.
OURS = "#0072B2"
SB3 = "#999999"
LEARNT = "#D55E00"
TEXT = "#222222"
SUBTLE = "#666666"


def check_plot_option(parser: argparse.ArgumentParser, file: Path) -> None:
    """Say what is wrong with a picture's file, or with matplotlib, before the work that it will show.

    :param parser: says it, and exits
    :param file: what ``--plot`` was given
    """
    if file.suffix not in (".svg", ".png"):
        parser.error(f"--plot {file}: the name must end in .svg or .png")
    if not file.parent.is_dir():
        parser.error(f"--plot {file}: there is no folder {file.parent}")
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        parser.error(f"--plot {file}: it cannot be written")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        parser.error("--plot needs matplotlib. Run: pip install matplotlib")


def write_figure(figure: Figure, file: Path) -> None:
    """Write a picture. The same figures give the same file.

    :param figure: the picture
    :param file: where to; the ending decides on the format
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    # An SVG has a date, and names that are random unless they are derived from something.
    with rc_context({"svg.hashsalt": "sb3-extra-buffers"}):
        figure.savefig(file, dpi=150, facecolor="white", metadata={"Date": None} if file.suffix == ".svg" else None)

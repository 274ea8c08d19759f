"""Colours of pictures, the option for them, and how they are written."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito, which colour-blind readers can distinguish; grey is SB3.
OURS = "#0072B2"
SB3 = "#999999"
LEARNT = "#D55E00"
TEXT = "#222222"
SUBTLE = "#666666"


def check_plot_option(parser: argparse.ArgumentParser, file: Path) -> None:
    """Check the file of ``--plot`` and matplotlib before the measurement.

    :param parser: reports errors and exits
    :param file: value of ``--plot``
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
    """Write a picture. The same figure gives the same file.

    :param figure: the picture
    :param file: .svg or .png
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    # Without these, an SVG has a date and random ids.
    with rc_context({"svg.hashsalt": "sb3-extra-buffers"}):
        figure.savefig(file, dpi=150, facecolor="white", metadata={"Date": None} if file.suffix == ".svg" else None)

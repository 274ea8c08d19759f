"""Options that several scripts have, checked before the work begins."""

from __future__ import annotations

import argparse
from pathlib import Path


def positive(text: str) -> int:
    """A number of at least 1, as the ``type`` of an option."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Offer ``--json FILE``, for all figures and the machine."""
    purpose = "also write all figures and the machine to FILE"
    parser.add_argument("--json", type=_in_a_folder, metavar="FILE", help=purpose)


def made_folder(text: str) -> Path:
    """A folder, made if it was not there, before the work whose results it is for; as the ``type`` of an option."""
    folder = Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{folder} cannot be made ({error.strerror})") from error
    return folder


def _in_a_folder(text: str) -> Path:
    file = Path(text)
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {file.parent}")
    return file

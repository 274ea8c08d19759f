"""Name a missing package and the pip command that installs it. Needs the standard library only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

#: Distribution and extra to install for a module, by the module's name or the name of a package that contains it.
_INSTALLS = {
    "PIL": ("pillow", ""),
    "ale_py": ("sb3-extra-buffers", "atari"),
    "av": ("sb3-extra-buffers-recording", "video"),
    "cv2": ("sb3-extra-buffers", "atari"),
    "gymnasium": ("sb3-extra-buffers", ""),
    "numpy": ("sb3-extra-buffers", ""),
    "sb3_contrib": ("sb3-extra-buffers", "contrib"),
    "sb3_extra_buffers": ("sb3-extra-buffers", ""),
    "sb3_extra_buffers.gpu_buffers": ("sb3-extra-buffers-gpu", ""),
    "sb3_extra_buffers.recording": ("sb3-extra-buffers-recording", ""),
    "stable_baselines3": ("sb3-extra-buffers", ""),
    "torch": ("sb3-extra-buffers", ""),
    "vizdoom": ("sb3-extra-buffers", "vizdoom"),
}
_OWN = ("benchmarks", "examples")


@contextmanager
def required_packages() -> Iterator[None]:
    """Around the imports of a script: exit with one sentence if a package is not installed."""
    try:
        yield
    except ImportError as error:
        sentence = missing_package(error)
        if sentence is None:
            raise
        sys.exit(f"error: {sentence}")


def missing_package(error: ImportError) -> str | None:
    """What is missing and how to install it; ``None`` if the error is about something else.

    :param error: raised by an import
    """
    if type(error).__module__.startswith("sb3_extra_buffers."):
        return str(error)  # names the package and the command
    if not isinstance(error, ModuleNotFoundError) or error.name is None or error.name.partition(".")[0] in _OWN:
        return None
    parts = error.name.split(".")
    packages = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    distribution, extra = next((_INSTALLS[package] for package in packages if package in _INSTALLS), (parts[0], ""))
    command = install_command(distribution, extra)
    return f"This example needs the module {error.name!r}, which is not installed. Run: {command}"


def install_command(distribution: str, extra: str) -> str:
    """The pip command for a distribution; ours come from where the core was installed, or all from this checkout.

    :param distribution: its name on an index
    :param extra: what people type in brackets, or nothing
    """
    if not distribution.startswith("sb3-extra-buffers"):
        return f"pip install {distribution}"
    try:
        return str(import_module("sb3_extra_buffers.errors.install").install_command(distribution, extra))
    except ImportError:  # not even the core is installed
        folder = distribution.removeprefix("sb3-extra-buffers-").replace("sb3-extra-", "")
        packages = Path(__file__).resolve().parents[2] / "packages"
        return f'pip install "{packages}"/*/' + (f' "{packages / folder}[{extra}]"' if extra else "")

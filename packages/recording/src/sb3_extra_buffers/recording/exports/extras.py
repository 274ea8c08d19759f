"""Libraries that only some exports need: imported when they are used, and named when they are missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sb3_extra_buffers.errors import MissingExtraError

_DISTRIBUTION = "sb3-extra-buffers-recording"
#: Import name of each library: what pip calls it, and the extra that brings it.
_LIBRARIES = {
    "PIL": ("pillow", "video"),
    "av": ("av", "video"),
    "datasets": ("datasets", "datasets"),
    "gymnasium": ("gymnasium", "gym"),
    "h5py": ("h5py", "minari"),
    "minari": ("minari", "minari"),
    "pyarrow": ("pyarrow", "parquet"),
    "stable_baselines3": ("stable-baselines3", "sb3"),
}


def require(module: str, feature: str, extra: str | None = None) -> Any:
    """Import a module, or say what to install.

    :param module: a library of the table above, or a module of one
    :param feature: what needs it, for the error
    :param extra: the extra to name, if several bring the library
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing(error, feature, extra) from error


def missing(error: ModuleNotFoundError, feature: str, extra: str | None = None) -> Exception:
    """The error to raise: what to install, or the same one if it is about a module that no extra brings.

    :param error: what the import raised
    :param feature: what needs the library
    :param extra: the extra to name, if several bring the library
    """
    name = (error.name or "").partition(".")[0]
    if name not in _LIBRARIES:
        return error
    package, usual = _LIBRARIES[name]
    return MissingExtraError(feature, package, extra or usual, _DISTRIBUTION)

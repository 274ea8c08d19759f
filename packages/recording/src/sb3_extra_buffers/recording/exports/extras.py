"""Libraries that only some features need: imported when they are used, and named when they are missing."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from sb3_extra_buffers.errors import MissingExtraError

_DISTRIBUTION = "sb3-extra-buffers-recording"
#: The extra that brings everything that a feature needs. Several bring the same library, and most features need more
#: than one: whoever installs the extra of a library is only told about the next.
_EXTRAS = {
    "contact_sheet": "video",
    "to_dataset": "datasets",
    "to_minari": "minari",
    "to_parquet": "parquet",
    "to_video": "video",
    "RecordCallback": "sb3",
    "RecordCallback with a folder": "video",
    "RecordEnv": "gym",
    "TerminalFrame": "gym",
    "VecRecord": "sb3",
}
#: Import name of each library, and what pip calls it.
_LIBRARIES = {
    "PIL": "pillow",
    "av": "av",
    "datasets": "datasets",
    "gymnasium": "gymnasium",
    "h5py": "h5py",
    "minari": "minari",
    "pyarrow": "pyarrow",
    "stable_baselines3": "stable-baselines3",
}
#: Extras that leave out what they are for on a Python that is older than that.
_PYTHONS = {"minari": (3, 11)}
_PYTHON = sys.version_info[:2]


def require(module: str, feature: str) -> Any:
    """Import a module, or say what to install.

    :param module: a library of the table above, or a module of one
    :param feature: what needs it
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing(error, feature) from error


def missing(error: ModuleNotFoundError, feature: str) -> Exception:
    """The error to raise: what to install, or the same one if it is about a module that no extra brings.

    :param error: what the import raised
    :param feature: what needs the library
    """
    name = (error.name or "").partition(".")[0]
    if name not in _LIBRARIES:
        return error
    extra = _EXTRAS[feature]
    needed = _PYTHONS.get(extra, _PYTHON)
    if needed > _PYTHON:  # where pip would install the rest, and the next error would be about the same feature
        hint = "{} needs Python {}.{} or newer, this is {}.{}: use another one.".format(feature, *needed, *_PYTHON)
        return MissingExtraError(feature, _LIBRARIES[name], "", _DISTRIBUTION, hint)
    return MissingExtraError(feature, _LIBRARIES[name], extra, _DISTRIBUTION)

"""Optional libraries: imported on first use, with an error that names the extra to install."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from sb3_extra_buffers.errors import MissingExtraError

_DISTRIBUTION = "sb3-extra-buffers-recording"
#: The extra that installs everything a feature needs. It is listed by feature, not by library: most features need
#: several libraries, and one extra installs them all.
_EXTRAS = {
    "contact_sheet": "video",
    "datasets": "gym",
    "datasets of HDF5 files": "hdf5",
    "datasets of Hugging Face": "datasets",
    "datasets of Minari": "minari",
    "datasets of Parquet files": "parquet",
    "datasets of pickles": "sb3",
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
#: Import name and distribution name of each library.
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
#: Oldest Python of extras that install nothing on older ones.
_PYTHONS = {"minari": (3, 11)}
_PYTHON = sys.version_info[:2]


def require(module: str, feature: str) -> Any:
    """Import a module, or raise an error with the command that installs it.

    :param module: a library of ``_LIBRARIES``, or one of its modules
    :param feature: name of the feature that needs it
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing(error, feature) from error


def missing(error: ModuleNotFoundError, feature: str) -> Exception:
    """Return the error to raise: what to install, or the same error if no extra installs the module.

    :param error: the error of the import
    :param feature: name of the feature that needs the library
    """
    name = (error.name or "").partition(".")[0]
    if name not in _LIBRARIES:
        return error
    extra = _EXTRAS[feature]
    needed = _PYTHONS.get(extra, _PYTHON)
    if needed > _PYTHON:  # installing the extra would not help
        hint = "{} needs Python {}.{} or newer, this is Python {}.{}.".format(feature, *needed, *_PYTHON)
        return MissingExtraError(feature, _LIBRARIES[name], "", _DISTRIBUTION, hint)
    return MissingExtraError(feature, _LIBRARIES[name], extra, _DISTRIBUTION)

"""What a recording holds, in lines. It is read from the file itself: who inspects one need not be able to load it."""

from __future__ import annotations

from typing import Any

from sb3_extra_buffers.checkpoints import ArrayFile
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.errors import FileContentError

#: What a file of a recording says that it is.
KIND = "recording"
#: Arrays that are told by their content, not by their form.
_FRAMES = "frames."


def told(file: ArrayFile) -> str:
    """Steps, frames and codec, and what else there is for each step.

    :param file: a recording
    """
    try:
        said, kept = file.metadata, len(file["rewards"])
        recorded = "" if said["steps"] == kept else f", the last of {int(said['steps']):,}"
        title = f"{file.path}: {KIND} of {said['recorded_by']}, {kept:,} steps{recorded}, {file.nbytes:,} bytes"
        rows = {"frames": "none"} if said["frames"] is None else _frames(said["frames"])
    except (KeyError, TypeError, ValueError) as error:  # whoever makes a file can say anything
        problem = f"what cannot be read ({type(error).__name__}: {error})"
        raise FileContentError(str(file.path), "a recording", problem, "Record it again, by save().") from error
    for name in sorted(file):
        if not name.startswith(_FRAMES):
            rows[name] = f"{file[name].dtype}{list(file[name].shape)}"
    width = max(map(len, rows))
    return "\n".join([title, *(f"  {name:<{width}}  {text}" for name, text in rows.items())])


def _frames(said: dict[str, Any]) -> dict[str, str]:
    shape = " x ".join(str(int(axis)) for axis in said["shape"])
    return {"frames": f"{shape}, {said['dtype']}", "codec": str(CodecSpec.from_json(said["codec"]))}

"""``write_npz``: a recording as arrays for numpy."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from sb3_extra_buffers.progress import progress_bar
from sb3_extra_buffers.recording.exports.batches import batches, select_steps
from sb3_extra_buffers.recording.exports.files import AnyPath, new_file
from sb3_extra_buffers.recording.protocol import Recording

_NAME = "to_npz"


def write_npz(
    recording: Recording,
    path: AnyPath,
    *,
    steps: range | None = None,
    compressed: bool = True,
    progress: bool = True,
) -> Path:
    """
    Write the arrays ``frames``, ``rewards``, ``actions``, ``dones`` and ``features`` for ``numpy.load``, losslessly.

    ``frames`` and ``features`` are written if the recording has them. Frames are decoded and written in batches.

    :param recording: the recording
    :param path: the file
    :param steps: consecutive steps, such as one of ``recording.episodes``; ``None`` for all
    :param compressed: whether to compress the arrays, as ``numpy.savez_compressed`` does
    :param progress: whether to show a progress bar on a terminal, if rich or tqdm is installed
    """
    target = Path(path)
    chosen = select_steps(recording, steps, _NAME)
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    columns: dict[str, list[NDArray[Any]]] = {"rewards": [], "actions": [], "dones": [], "features": []}
    with (
        new_file(target, _NAME) as file,
        zipfile.ZipFile(file, "w", method) as archive,
        progress_bar(_NAME, len(chosen), progress) as advance,
    ):
        frames: Any = None
        try:
            for numbers, clip in batches(recording, chosen):
                for name, column in columns.items():
                    column.append(getattr(clip, name))
                if clip.frames is not None:
                    if frames is None:
                        frames = archive.open("frames.npy", "w", force_zip64=True)
                        _write_header(frames, (len(chosen), *clip.frames.shape[1:]), clip.frames.dtype)
                    frames.write(np.ascontiguousarray(clip.frames).data)
                advance(len(numbers))
        finally:
            if frames is not None:
                frames.close()
        for name, column in columns.items():
            if column[0] is not None:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array(member, np.concatenate(column), allow_pickle=False)
    return target


def _write_header(file: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, header)

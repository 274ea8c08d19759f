"""``load_state``: what a checkpoint holds, without reading what nobody has asked for yet."""

from __future__ import annotations

import os
from pathlib import Path

from sb3_extra_buffers.checkpoints.manifest import NAME, Manifest, read_manifest
from sb3_extra_buffers.checkpoints.saving import stretch_name
from sb3_extra_buffers.checkpoints.scattered import Scattered
from sb3_extra_buffers.checkpoints.segments import Segments
from sb3_extra_buffers.errors import FileDamagedError, FileMissingError
from sb3_extra_buffers.heaps.state import Piece, State

#: How often to look again if files vanish: another process is saving, and its manifest is already another one.
_ATTEMPTS = 20


def load_state(path: str | os.PathLike[str], verify: bool = False) -> tuple[State, Manifest]:
    """
    The state that a folder holds. Its logs and most of its arrays stay in their files until they are looked at.

    :param path: the folder
    :param verify: whether to read and check everything
    :return: the state; and what :func:`save_state` needs in order to write only what will have changed
    """
    folder = Path(path)
    for _ in range(_ATTEMPTS):
        manifest = read_manifest(folder)
        try:
            segments = Segments(folder, manifest.segments)
        except FileMissingError as error:
            if read_manifest(folder).serial != manifest.serial:
                continue
            raise FileDamagedError(str(folder), (f"{Path(error.path).name} is missing",)) from None
        if verify:
            segments.verify()
        else:
            manifest.source = segments
        try:
            return _assembled(manifest, segments), manifest
        except KeyError as error:
            raise FileDamagedError(str(folder / NAME), (f"it tells of {error.args[0]}, which are not there",)) from None
    raise FileDamagedError(str(folder), ("its files change faster than they can be opened",), "Try again.")


def _assembled(manifest: Manifest, segments: Segments) -> State:
    scattered = {name: Scattered(name, blocked, segments) for name, blocked in manifest.arrays.items()}
    arrays = {**manifest.inline, **{name: found.array() for name, found in scattered.items()}}
    pieces = {}
    for key, parts in manifest.logs.items():
        names = [(part, stretch_name(key, part.begin)) for part in parts]
        pieces[key] = [Piece(part.begin, segments.item(part.file, name, part.end - part.begin)) for part, name in names]
    return State(manifest.facts, arrays, [], pieces, scattered)

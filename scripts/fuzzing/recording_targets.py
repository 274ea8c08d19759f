"""Recordings, as they come and with checksums that fit whatever they say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.recording import RecordBuffer, load
from scripts.fuzzing.file_targets import _Folder, resealed
from scripts.fuzzing.target import Target, only_errors_of_ours


def recording_targets() -> Iterator[Target]:
    """Two ways to be handed a file."""
    folder, rng = _Folder(), np.random.default_rng(0)
    buffer = RecordBuffer((6, 5), 3, 12)
    for step in range(12):
        frame = rng.integers(0, 3, (6, 5, 3)).astype(np.uint8)
        buffer.add(frame, float(step), step % 3, done=step % 5 == 4)
    seeds = []
    for codec in ("gzip", "none"):
        buffer.save(folder.path, codec)
        seeds.append(folder.path.read_bytes())
    for name, prepare in (("as it is", bytes), ("resealed", resealed)):
        yield Target(f"recording {name}", seeds, _reading(folder, prepare))
    yield Target("recording metadata", *_described(folder))


def _described(folder: _Folder) -> tuple[list[bytes], Callable[[bytes], None]]:
    """Files whose metadata say anything, beside sound arrays."""
    with checkpoints.open_arrays(folder.path) as file:
        arrays, kind, seed = {name: array.copy() for name, array in file.items()}, file.kind, json.dumps(file.metadata)
    read = _reading(folder, bytes)

    def attack(data: bytes) -> None:
        try:
            metadata = json.loads(data)
            checkpoints.write(folder.path, arrays, metadata, kind)
        except (ValueError, RecursionError, TypeError):
            return  # that is no JSON
        read(folder.path.read_bytes())

    return [seed.encode()], attack


def _reading(folder: _Folder, prepare: Callable[[bytes], bytes]) -> Callable[[bytes], None]:
    def attack(data: bytes) -> None:
        with only_errors_of_ours(), load(folder.put(prepare(data))) as saved:
            saved.verify()
            _ = saved.episodes, saved.memory, saved.steps, saved.nbytes
            saved.statistics()
            for _ in saved.batches():
                pass

    return attack

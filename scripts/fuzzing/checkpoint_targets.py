"""Checkpoints whose manifest says anything, with checksums that fit: they are refused, or can be used."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from gymnasium import spaces

from sb3_extra_buffers.checkpoints.format import LENGTH_NBYTES, parse
from sb3_extra_buffers.compressed import CompressedReplayBuffer, inspect
from scripts.fuzzing.checkpoint_cases import Case, class_cases
from scripts.fuzzing.file_targets import resealed
from scripts.fuzzing.target import Target, only_errors_of_ours

_MANIFEST = "manifest.safetensors"
_N_ENVS = 2
#: Smaller ones are never frames by themselves.
_SHAPES = {"cells": (4, 9, 9), "frames": (4, 9, 9), "auto": (3, 20, 20)}


def checkpoint_targets() -> Iterator[Target]:
    """Cells and frames, on a heap with a limit and without; and other classes of buffers."""
    seeds = [(layout, heap, "rle", 40) for heap in ("memory", "ring") for layout in ("cells", "frames")]
    # Noise becomes cells, once there is enough of it.
    for layout, heap, codec, steps in (*seeds, ("auto", "memory", "auto", 40), ("auto", "memory", "auto", 5)):
        buffer = CompressedReplayBuffer(
            16,
            spaces.Box(0, 255, _SHAPES[layout], np.uint8),
            spaces.Discrete(2),
            "cpu",
            _N_ENVS,
            compression_method=codec,
            layout=layout,
            heap=heap,
            heap_kwargs={"capacity": 1 << 15} if heap == "ring" else None,
        )
        _play(buffer, steps)
        yield from _targets_of(Case(f"{layout} {heap} {steps}", buffer, _use))
    for case in class_cases():
        yield from _targets_of(case)


def _targets_of(case: Case) -> Iterator[Target]:
    """What a manifest says, the numbers that are in it, and what lies in a segment."""
    folder = tempfile.TemporaryDirectory()
    case.buffer.save(folder.name)
    manifest = Path(folder.name, _MANIFEST)
    seed, numbers = manifest.read_bytes(), _Overlay(manifest.read_bytes())
    yield Target(f"checkpoint {case.label} manifest", [seed], _loading(case, folder, _MANIFEST, resealed))
    yield Target(f"checkpoint {case.label} numbers", [numbers.region], _loading(case, folder, _MANIFEST, numbers))
    segment = next(Path(folder.name).glob("segment-*"))
    payloads = _Overlay(segment.read_bytes(), seal=False)
    yield Target(f"checkpoint {case.label} payloads", [payloads.region], _loading(case, folder, segment.name, payloads))


class _Overlay:
    """Puts any bytes in place of the arrays of a file, which keeps its header.

    :param content: the file
    :param seal: whether checksums shall fit
    """

    def __init__(self, content: bytes, seal: bool = True) -> None:
        begin = LENGTH_NBYTES + int.from_bytes(content[:LENGTH_NBYTES], "little")
        layout = parse(content[LENGTH_NBYTES:begin], len(content) - begin)
        self._head, self.region = (content[: begin + layout.checksums.end], content[begin + layout.checksums.end :])
        self._seal = seal

    def __call__(self, data: bytes) -> bytes:
        content = self._head + data[: len(self.region)] + self.region[len(data) :]
        return resealed(content) if self._seal else content


def _play(buffer: CompressedReplayBuffer, steps: int) -> None:
    rng, shape = np.random.default_rng(0), buffer.obs_shape
    obs = rng.integers(0, 9, (_N_ENVS, *shape)).astype(np.uint8)
    for step in range(steps):
        following = obs.copy()
        if shape == _SHAPES["auto"]:
            following = rng.integers(0, 256, obs.shape).astype(np.uint8)
        else:
            following[:, :-1] = obs[:, 1:]
            following[:, -1, step % 9, 0] = step + 1
        buffer.add(obs, following, np.zeros((_N_ENVS, 1), int), np.zeros(_N_ENVS), np.zeros(_N_ENVS), [{}] * _N_ENVS)
        obs = following


def _use(buffer: CompressedReplayBuffer) -> None:
    for _ in range(3):
        buffer.sample(30)
    if buffer.n_envs == _N_ENVS and buffer.observation_space.shape == (4, 9, 9):
        _play(buffer, 30)
        buffer.sample(30)


def _loading(
    case: Case, seeds: tempfile.TemporaryDirectory[str], name: str, prepare: Callable[[bytes], bytes]
) -> Callable[[bytes], None]:
    def attack(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as attacked:
            shutil.copytree(seeds.name, attacked, dirs_exist_ok=True)
            Path(attacked, name).write_bytes(prepare(data))
            with only_errors_of_ours():
                inspect(attacked)
            with only_errors_of_ours():
                case.attack(Path(attacked))

    return attack

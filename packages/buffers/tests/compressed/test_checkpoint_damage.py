"""A flipped bit in any file of a checkpoint is an error, or has no effect on what is sampled."""

from contextlib import suppress

import numpy as np
import pytest
import torch as th
from gymnasium import spaces

from sb3_extra_buffers.checkpoints import ArrayFile, manifest
from sb3_extra_buffers.compressed import (
    CompressedDictReplayBuffer,
    CompressedReplayBuffer,
    CompressedRolloutBuffer,
)
from sb3_extra_buffers.errors import FileError

pytestmark = pytest.mark.usefixtures("no_waiting")
ACTIONS = spaces.Discrete(5)
#: A full buffer, with arrays in segments and in the manifest.
ROWS, N_ENVS, PLACES = 700, 2, 40
RING = {"heap": "ring", "heap_kwargs": {"capacity": 1 << 20}}
KINDS = {
    "frames": (CompressedReplayBuffer, {"layout": "frames"}),
    "compressed frames": (CompressedReplayBuffer, {"layout": "frames", "compression_method": "gzip"}),
    "frames in a ring": (CompressedReplayBuffer, {"layout": "frames", **RING}),
    "cells": (CompressedReplayBuffer, {"layout": "cells", "compression_method": "rle"}),
    "gzip cells": (CompressedReplayBuffer, {"layout": "cells", "compression_method": "gzip"}),
    "cells in a ring": (CompressedReplayBuffer, {"layout": "cells", "compression_method": "rle", **RING}),
    "cells in a file": (CompressedReplayBuffer, {"layout": "cells", "compression_method": "rle", "heap": "mmap"}),
    "raw": (CompressedReplayBuffer, {"layout": "cells", "compression_method": "none"}),
    "dict": (CompressedDictReplayBuffer, {"layout": "cells", "compression_method": "rle"}),
    "rollout": (CompressedRolloutBuffer, {"layout": "frames"}),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def samples(buffer):
    """Everything that can be sampled, each transition some times."""
    np.random.seed(3)
    if isinstance(buffer, CompressedRolloutBuffer):
        return [list(batch) for batch in buffer.get(64)]
    return [list(buffer.sample(500)) for _ in range(8)]


def are_equal(ours, theirs):
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(are_equal(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(are_equal, ours, theirs))
    return ours is theirs or th.equal(ours, theirs)


@pytest.fixture
def saved(tmp_path, screen, composite, walk, feed):
    def saved(kind):
        owner, options = KINDS[kind]
        space = composite(16) if kind == "dict" else screen(16)
        buffer = owner(ROWS, space, ACTIONS, "cpu", n_envs=N_ENVS, **options)
        for obs, following, action, reward, done, infos in walk(space, ACTIONS, N_ENVS, ROWS):
            if kind == "rollout":
                values, log_probs = (th.as_tensor(part, dtype=th.float32) for part in (reward, reward * 2))
                buffer.add(obs, action, reward, done, values, log_probs)
            else:
                feed((obs, following, action, reward, done, infos), buffer)
        buffer.save(tmp_path / "checkpoint")
        return owner, tmp_path / "checkpoint"

    return saved


def flipped(file, seed):
    """Flip a bit of a file, in turn in the header, in the checksums and in every array; put it right again."""
    content, rng = file.read_bytes(), np.random.default_rng(seed)
    with ArrayFile(file) as found:
        ranges = [(found.offset(name), found.entries[name].nbytes) for name in found if found.entries[name].nbytes]
    first = min(begin for begin, _ in ranges)
    ranges = [(0, 8), (8, first - 8), (first - 64, 64), *ranges]
    for begin, nbytes in (ranges * PLACES)[:PLACES] if len(ranges) < PLACES else ranges:
        damaged = bytearray(content)
        place = begin + int(rng.integers(nbytes))
        damaged[place] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        yield place
    file.write_bytes(content)


@each_kind
@pytest.mark.parametrize("verify", [None, False])
def test_no_flipped_bit_changes_a_sample(kind, verify, saved):
    owner, path = saved(kind)
    expected = samples(owner.load(path, "cpu", verify=True))
    assert are_equal(samples(owner.load(path, "cpu", verify=verify)), expected)
    found = wrong = 0
    for number, file in enumerate(sorted(path.iterdir())):
        for _ in flipped(file, number):
            with suppress(FileError):
                wrong += not are_equal(samples(owner.load(path, "cpu", verify=verify)), expected)
                continue
            found += 1
    assert wrong == 0
    assert found > PLACES  # most bits are needed
    assert are_equal(samples(owner.load(path, "cpu", verify=verify)), expected)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "raw"])  # raw observations are read when loading
def test_damage_of_observations_is_found_by_sampling_alone(kind, saved):
    owner, path = saved(kind)
    (segment,) = path.glob("segment-*")
    with ArrayFile(segment) as found:
        logs = [name for name in found if "@" in name]
        places = [found.offset(name) + found.entries[name].nbytes // 2 for name in logs]
    assert logs
    for place in places:
        content = bytearray(segment.read_bytes())
        content[place] ^= 1
        segment.write_bytes(content)
        buffer = owner.load(path, "cpu", verify=False)  # opens: observations were not read
        for _ in range(2):
            with pytest.raises(FileError, match=r"segment-000001.*is damaged|damaged.*segment-000001"):
                samples(buffer)
        content[place] ^= 1
        segment.write_bytes(content)


def test_small_checkpoints_are_verified_when_they_are_loaded_and_large_ones_when_they_are_read(saved, monkeypatch):
    owner, path = saved("cells")
    (segment,) = path.glob("segment-*")
    with ArrayFile(segment) as found:
        place = found.offset(next(name for name in found if "@" in name))
    content = bytearray(segment.read_bytes())
    content[place] ^= 1
    segment.write_bytes(content)
    with pytest.raises(FileError):
        owner.load(path, "cpu")
    monkeypatch.setattr(manifest, "_SMALL_NBYTES", 1000)
    buffer = owner.load(path, "cpu")
    with pytest.raises(FileError):
        samples(buffer)

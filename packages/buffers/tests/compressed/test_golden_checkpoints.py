"""Checkpoints that an earlier version has written are read as they were meant, to the last bit.

They are frozen: ``python -m scripts.freeze_files --replace`` makes them, on purpose, and no test does.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers import compressed
from sb3_extra_buffers.compressed import inspect

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
REPLAY = [name for name in NAMES if name != "rollout"]
BATCH = 16


@pytest.fixture
def opened(tmp_path):
    """A buffer from a copy of what is frozen, and what it must hold."""

    def opened(name):
        path = shutil.copytree(GOLDEN / name, tmp_path / name)
        kind = getattr(compressed, inspect(path).buffer)
        with np.load(GOLDEN / f"{name}.npz") as expected:
            return kind, path, dict(expected)

    return opened


def same(found, expected, name):
    """Compare what was found with what is expected under a name, whatever it is handed out in."""
    if isinstance(found, dict):
        assert sorted(found) == sorted(key.removeprefix(f"{name}/") for key in expected if key.startswith(f"{name}/"))
        for key, part in found.items():
            same(part, expected, f"{name}/{key}")
        return
    array = np.asarray(found)
    assert (array.dtype, array.shape) == (expected[name].dtype, expected[name].shape), name
    assert array.tobytes() == expected[name].tobytes(), name


def same_batch(batch, expected):
    for field in batch._fields:
        if getattr(batch, field) is not None:
            same(getattr(batch, field), expected, f"batch/{field}")


def at(value, rows):
    return {key: part[rows] for key, part in value.items()} if isinstance(value, dict) else value[rows]


def test_every_kind_is_there():
    expected = {"frames", "frames-gzip", "cells-gzip", "cells-rle-ring", "cells-optimized", "dict", "rollout"}
    expected |= {"auto-cells", "undecided"}
    assert set(NAMES) >= expected


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("name", REPLAY)
def test_a_replay_buffer_holds_what_was_added(name, verify, opened):
    kind, path, expected = opened(name)
    buffer = kind.load(path, device="cpu", verify=verify)
    assert (buffer.pos, buffer.full, buffer._kept_rows()) == tuple(expected[key] for key in ("pos", "full", "kept"))
    rows = (buffer.pos - expected["kept"] + np.arange(expected["kept"])) % buffer.buffer_size
    for field in ("observations", "next_observations", "actions", "rewards", "dones", "timeouts"):
        if any(key.split("/")[0] == field for key in expected):
            same(at(getattr(buffer, field), rows), expected, field)
    np.random.seed(3)
    same_batch(buffer.sample(BATCH), expected)


def test_what_was_chosen_or_not_is_what_it_was(opened):
    for name, told in (("auto-cells", "none (chosen: "), ("undecided", "frames (not yet known how they are stacked")):
        kind, path, _ = opened(name)
        assert kind.load(path, device="cpu").memory_report().keys[0].codec.startswith(told)


@pytest.mark.parametrize("verify", [True, False])
def test_a_rollout_buffer_holds_what_was_added(verify, opened):
    kind, path, expected = opened("rollout")
    buffer = kind.load(path, device="cpu", verify=verify)
    for field in expected:
        if "/" not in field:
            same(np.asarray(getattr(buffer, field)), expected, field)
    np.random.seed(3)
    same_batch(next(iter(buffer.get(BATCH))), expected)


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize("name", REPLAY)
def test_it_can_be_saved_again_where_it_was(name, opened):
    kind, path, expected = opened(name)
    kind.load(path, device="cpu").save(path)
    buffer = kind.load(path, device="cpu", verify=True)
    np.random.seed(3)
    same_batch(buffer.sample(BATCH), expected)

"""Parameters of a heap that describe a machine come from the caller of load(), not from the checkpoint."""

import json
import os

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import checkpoints, heaps
from sb3_extra_buffers.compressed import CompressedReplayBuffer
from sb3_extra_buffers.heaps.ring import RingHeap

pytestmark = pytest.mark.usefixtures("no_waiting")
ACTIONS, ROWS = spaces.Discrete(5), 30
CELLS = {"layout": "cells", "compression_method": "gzip"}


@pytest.fixture
def saved(tmp_path, screen, walk, feed):
    """A folder with a buffer in it, and the buffer."""

    def saved(steps=40, **options):
        buffer = CompressedReplayBuffer(ROWS, screen(), ACTIONS, "cpu", **options)
        for step in walk(screen(), ACTIONS, 1, steps):
            feed(step, buffer)
        buffer.save(tmp_path / "checkpoint")
        return tmp_path / "checkpoint", buffer

    return saved


def claim(checkpoint, /, **heap_kwargs):
    """Let a checkpoint claim something about its heap, with correct checksums."""
    name = checkpoint / "manifest.safetensors"
    file = checkpoints.open_arrays(name)
    arrays, said = {key: file[key].copy() for key in file}, json.loads(json.dumps(file.metadata))
    said["about"]["arguments"]["heap_kwargs"] = {"mapping": list(heap_kwargs.items())}
    checkpoints.write(name, arrays, said, "checkpoint")


def heap_of(buffer):
    return buffer._storage.heap


def same_content(ours, theirs):
    """Whether what the last of two buffers still holds is what the first holds."""
    rows = np.arange(theirs.pos - theirs._kept_rows(), theirs.pos) % ROWS
    for name in ("observations", "next_observations"):
        assert (getattr(ours, name)[rows] == getattr(theirs, name)[rows]).all()
    return len(rows)


def test_a_checkpoint_does_not_choose_the_folder_of_a_heap(saved):
    path, buffer = saved(heap="mmap", heap_kwargs={"capacity": 20_000}, **CELLS)
    claim(path, capacity=20_000, folder="/no/such/folder")
    with pytest.warns(UserWarning, match="/no/such/folder"):
        loaded = CompressedReplayBuffer.load(path, "cpu", verify=True)
    assert same_content(loaded, buffer)
    assert same_content(CompressedReplayBuffer.load(path, "cpu", heap_kwargs={"folder": None}), buffer)


@pytest.mark.parametrize("layout", ["cells", "frames"])
def test_a_checkpoint_claims_no_more_disk_than_its_rows_can_need(saved, tmp_path, layout):
    path, buffer = saved(heap="mmap", layout=layout)
    needed = heap_of(buffer).capacity
    claim(path, capacity=3 << 30)
    loaded = CompressedReplayBuffer.load(path, "cpu", verify=True)
    assert heap_of(loaded).capacity == needed
    assert os.fstat(heap_of(loaded)._file.fileno()).st_size == needed
    assert same_content(loaded, buffer)
    named = CompressedReplayBuffer.load(path, "cpu", heap_kwargs={"capacity": needed + 4096, "folder": str(tmp_path)})
    assert heap_of(named).capacity == needed + 4096  # load() may set the capacity
    assert same_content(named, buffer)


def test_a_folder_that_was_saved_and_is_not_given_again_is_reported_once(saved, tmp_path):
    path, buffer = saved(heap="mmap", heap_kwargs={"capacity": 20_000, "folder": str(tmp_path)}, **CELLS)
    told = (
        rf"{path}: the parameters {{'folder': '{tmp_path}'}} of the heap 'mmap' were not .*give {{'folder': None}}\.$"
    )
    for given in ({}, {"heap_kwargs": {"capacity": 30_000}}):
        with pytest.warns(UserWarning, match=told) as caught:
            loaded = CompressedReplayBuffer.load(path, "cpu", **given)
        assert [warning.filename for warning in caught] == [__file__]
        assert same_content(loaded, buffer)
    for given in ({"folder": str(tmp_path)}, {"folder": None}):
        assert same_content(CompressedReplayBuffer.load(path, "cpu", heap_kwargs=given), buffer)
    loaded.save(path)  # without a folder: nothing to report
    assert same_content(CompressedReplayBuffer.load(path, "cpu"), buffer)


class PlacedHeap(RingHeap):
    """A third party's heap: it declares which of its parameters describe a machine, whatever their names."""

    def __init__(self, cells, capacity, socket, path):
        super().__init__(cells, capacity)
        self.socket, self.path = socket, path


@pytest.fixture
def placed(monkeypatch):
    parameters = {"socket": "/run/heap", "path": "a/b"}
    plugin = heaps.HeapPlugin(1, PlacedHeap, "x", ("capacity",), parameters, local=("socket",))
    real = heaps.registry.load
    monkeypatch.setattr(heaps.registry, "load", lambda name: plugin if name == "placed" else real(name))


@pytest.mark.usefixtures("placed")
def test_any_heap_declares_what_a_checkpoint_does_not_carry_over(saved):
    given = {"capacity": 20_000, "socket": "/mine", "path": "c/d"}
    path, buffer = saved(heap="placed", heap_kwargs=given, **CELLS)
    told = r"the parameters {'socket': '/mine'} of the heap 'placed' were not .* give {'socket': '/run/heap'}\.$"
    with pytest.warns(UserWarning, match=told):
        loaded = CompressedReplayBuffer.load(path, "cpu")
    assert (heap_of(loaded).socket, heap_of(loaded).path) == ("/run/heap", "c/d")
    assert same_content(loaded, buffer)
    named = CompressedReplayBuffer.load(path, "cpu", heap_kwargs={"socket": "/other"})
    assert (heap_of(named).socket, heap_of(named).path, heap_of(named).capacity) == ("/other", "c/d", 20_000)


@pytest.mark.parametrize("heap", ["ring", "mmap"])
@pytest.mark.parametrize("layout", [CELLS, {"layout": "frames"}], ids=str)
@pytest.mark.parametrize("room", [2.0, 1.3, 0.4])
def test_another_capacity_keeps_what_fits(saved, screen, walk, feed, tmp_path, heap, layout, room):
    path, buffer = saved(heap=heap, heap_kwargs={"capacity": 12_000}, **layout)
    capacity = int(12_000 * room)
    loaded = CompressedReplayBuffer.load(path, "cpu", heap_kwargs={"capacity": capacity})
    assert heap_of(loaded).capacity == capacity
    assert same_content(buffer, loaded) == buffer._kept_rows()
    loaded.save(tmp_path / "again")
    twin = CompressedReplayBuffer.load(tmp_path / "again", "cpu", heap_kwargs={"capacity": capacity})
    for step in walk(screen(), ACTIONS, 1, 50):
        feed(step, buffer, loaded, twin)
        assert heap_of(twin).live <= capacity
        kept = same_content(buffer, loaded) if room > 1 else same_content(loaded, twin)
        assert kept == same_content(loaded, twin)
        twin.sample(5)

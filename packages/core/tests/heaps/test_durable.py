"""A ring with a name: closed and opened again, it is what it was."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest

from sb3_extra_buffers.errors import FileContentError, FileError, HeapStateError, ParameterError
from sb3_extra_buffers.heaps import create, journal
from sb3_extra_buffers.heaps.state import Piece, State
from sb3_extra_buffers.testing.heap_subject import held, payload, put
from sb3_extra_buffers.testing.processes import in_forked_child, run_python

CAPACITY = 7919
#: Few are used. So many that the order of writing never has to be tidied up, which evicts a little less.
CELLS = 20_000


def make(path, cells=CELLS, reopen=False, **parameters):
    return create("mmap", cells, **{"capacity": CAPACITY, "path": str(path), "reopen": reopen, **parameters})


def fill(heaps, first, rows):
    """Write the same rows, of all sizes and in any order, into several heaps."""
    for step in range(first, first + rows):
        random = np.random.default_rng([9, step])
        cells = random.permutation(40)[: random.integers(1, 6)].tolist()
        payloads = [payload(cell, step, int(random.integers(1, 700))) for cell in cells]
        for heap in heaps:
            put(heap, cells, payloads)


def facts(heap):
    return held(heap), heap.live, heap.evicted


@pytest.mark.parametrize("rows", [0, 1, 7, 60, 400])
def test_a_reopened_heap_holds_and_counts_what_it_did_and_goes_on_as_if_nothing_had_happened(tmp_path, rows):
    heap, twin = make(tmp_path / "heap"), create("ring", CELLS, capacity=CAPACITY)
    fill([heap, twin], 0, rows)
    assert facts(heap) == facts(twin)
    heap.close()
    again = make(tmp_path / "heap", reopen=True)
    assert facts(again) == facts(twin)
    assert again.recovery.is_whole
    assert again.recovery.cells == len(held(twin))
    fill([again, twin], rows, 100)
    assert facts(again) == facts(twin)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heap", "heap.journal"]


def test_a_journal_does_not_grow_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "_MIN_NBYTES", 4096)
    heap, twin, sizes = make(tmp_path / "heap"), create("ring", CELLS, capacity=CAPACITY), []
    for lap in range(60):
        fill([heap, twin], 20 * lap, 20)
        sizes.append((tmp_path / "heap.journal").stat().st_size)
        if lap % 10 == 5:
            heap.close()
            heap = make(tmp_path / "heap", reopen=True)
        assert facts(heap) == facts(twin)
    assert max(sizes) < 4 * 4096
    assert any(after < before for before, after in pairwise(sizes))


def test_what_was_cleared_stays_cleared(tmp_path):
    heap, twin = make(tmp_path / "heap"), create("ring", CELLS, capacity=CAPACITY)
    fill([heap], 0, 50)
    heap.clear()
    fill([heap, twin], 50, 3)
    heap.sync()
    heap.close()
    assert facts(make(tmp_path / "heap", reopen=True)) == facts(twin)


def test_a_file_is_open_for_one_heap_at_a_time(tmp_path):
    heap = make(tmp_path / "heap")
    code = (
        "import sys\nfrom sb3_extra_buffers.errors import HeapStateError\nfrom sb3_extra_buffers.heaps import create\n"
        f"try:\n    create('mmap', {CELLS}, capacity={CAPACITY}, path=sys.argv[1], reopen=True)\n"
        "except HeapStateError as error:\n    print(error)\n"
    )
    with pytest.raises(HeapStateError, match="it is open in another heap"):
        make(tmp_path / "heap", reopen=True)
    assert "it is open in another heap" in run_python(code, str(tmp_path / "heap"))
    heap.close()
    assert run_python(code, str(tmp_path / "heap")) == ""


def test_a_forked_child_reads_writes_nothing_and_does_not_keep_the_lock(tmp_path):
    heap = make(tmp_path / "heap")
    put(heap, [0], [b"parent"])

    def in_child():
        assert held(heap) == {0: b"parent"}
        for write in (heap.clear, heap.sync, lambda: put(heap, [0], [b"child"])):
            with pytest.raises(HeapStateError, match="this process was forked"):
                write()
        with pytest.raises(HeapStateError, match="it is open in another heap"):
            make(tmp_path / "heap", reopen=True)

    in_forked_child(in_child)
    assert held(heap) == {0: b"parent"}
    heap.close()
    assert held(make(tmp_path / "heap", reopen=True)) == {0: b"parent"}


def test_a_copy_has_a_file_without_a_name(tmp_path):
    heap = make(tmp_path / "heap")
    fill([heap], 0, 30)
    for twin in (copy.deepcopy(heap), pickle.loads(pickle.dumps(heap))):
        assert facts(twin) == facts(heap)
        put(twin, [0], [b"new"])
        assert not hasattr(twin, "path")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["heap", "heap.journal"]


def test_a_heap_that_was_loaded_into_a_file_is_found_again_without_what_it_was_loaded_from(tmp_path):
    source, loaded = create("ring", CELLS, capacity=CAPACITY), make(tmp_path / "heap")
    fill([source], 0, 90)
    state = source.state()
    pieces = {log.key: [Piece(log.begin, np.concatenate(log.read(log.begin, log.end)))] for log in state.logs}
    loaded.restore(State(state.facts, state.arrays, [], pieces))
    assert facts(loaded) == facts(source)
    fill([source, loaded], 90, 2)
    loaded.close()
    again = make(tmp_path / "heap", reopen=True)
    assert facts(again) == facts(source)
    assert again.recovery.is_whole


def test_a_closed_heap_refuses_to_be_written(tmp_path):
    heap = make(tmp_path / "heap")
    put(heap, [3], [b"three"])
    heap.close()
    with pytest.raises(HeapStateError, match="was closed"):
        put(heap, [3], [b"four"])
    assert held(heap) == {3: b"three"}


def test_a_file_that_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "heap").write_bytes(b"precious")
    with pytest.raises(FileContentError, match=r"Take another path, or remove it.*goes on with it by reopen=True"):
        make(tmp_path / "heap")
    with pytest.raises(FileError, match="is not a file of sb3-extra-buffers"):
        make(tmp_path / "heap", reopen=True)
    assert (tmp_path / "heap").read_bytes() == b"precious"
    with pytest.raises(FileContentError, match="no file"):
        make(tmp_path / "other", reopen=True)
    assert [path.name for path in tmp_path.iterdir()] == ["heap"]


@pytest.mark.parametrize(
    ("parameters", "found"), [({"cells": 41}, f"of {CELLS}"), ({"capacity": 8000}, f"of {CAPACITY}")]
)
def test_other_sizes_than_those_of_the_file_are_refused(tmp_path, parameters, found):
    make(tmp_path / "heap").close()
    with pytest.raises(FileContentError, match=found):
        make(tmp_path / "heap", **{"reopen": True, **parameters})
    make(tmp_path / "heap", reopen=True)


def test_the_journal_of_another_heap_is_refused(tmp_path):
    make(tmp_path / "one").close()
    make(tmp_path / "two").close()
    (tmp_path / "two.journal").replace(tmp_path / "one.journal")
    with pytest.raises(FileContentError, match="that of another heap"):
        make(tmp_path / "one", reopen=True)


@pytest.mark.parametrize(
    "parameters",
    [{"path": "/no/such/folder/heap"}, {"path": 3}, {"folder": "/tmp"}, {"reopen": 1}, {"path": None, "reopen": True}],
)
def test_parameters_that_make_no_sense_are_refused(tmp_path, parameters):
    with pytest.raises(ParameterError):
        create("mmap", CELLS, **{"capacity": CAPACITY, "path": str(tmp_path / "heap"), **parameters})
    assert list(tmp_path.iterdir()) == []

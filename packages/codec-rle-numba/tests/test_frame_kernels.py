"""The compiled frame kernels keep every rule of the contract, among them: they do what the reference does."""

import ctypes
import mmap
import pickle

import numpy as np
import pytest

from sb3_extra_buffers import frames
from sb3_extra_buffers.frames import FrameGeometry, Streams
from sb3_extra_buffers.frames.streams import PATTERNS
from sb3_extra_buffers.frames.workbench import Workbench
from sb3_extra_buffers.testing import KernelConformance
from sb3_extra_buffers.testing.processes import in_forked_child
from sb3_extra_buffers_codec_rle_numba import jit
from sb3_extra_buffers_codec_rle_numba.frame_kernels import NumbaKernels, plan_read, read_rows, write_rows
from sb3_extra_buffers_codec_rle_numba.rle_jit import decode_rows


class TestNumba(KernelConformance):
    kernels = "numba"


def test_they_are_chosen_where_they_are_installed():
    assert frames.create().name == "numba"


def test_a_pickle_takes_whatever_is_installed_where_it_is_loaded():
    packed = pickle.dumps(frames.create("numba"))
    assert b"rle_numba" not in packed
    assert pickle.loads(packed).name == "numba"


def test_frames_of_more_than_128_kilobytes_have_wider_counts():
    content = np.random.default_rng(0).integers(0, 256, (6, 200_000), np.uint8)
    content[2:, ::5] = 0
    cells, packed = np.arange(6), []
    for name in ("numba", "numpy"):
        bench = Workbench(frames.create(name), FrameGeometry(1, 1, 200_000), 6, 1, chunk=4)
        bench.write(cells, content)
        assert bench.streams.filling.counts.itemsize == 4
        np.testing.assert_array_equal(bench.read(cells), content)
        packed.append([bytes(chunk) for chunk in bench.shelf.packed.values()])
    assert packed[0] == packed[1]
    assert len(packed[0]) == 1


def test_more_patterns_than_there_is_room_for_are_stored_as_new_frames():
    rng, geometry = np.random.default_rng(0), FrameGeometry(4, 1, 40)
    benches = [Workbench(frames.create(name), geometry, 400, 1) for name in ("numba", "numpy")]
    row = rng.integers(1, 256, (4, 40)).astype(np.uint8)
    truth = np.zeros((400, 160), np.uint8)
    for step in range(400):
        # Frames in any order, some of them new, some blank: patterns of all kinds.
        row = row[rng.integers(0, 4, 4)]
        row[rng.integers(0, 4)] = rng.integers(1, 256, 40) * (rng.random() < 0.9)
        truth[step] = row.reshape(-1)
        for bench in benches:
            bench.write(np.array([step]), truth[step : step + 1])
    for bench in benches:
        assert bench.streams.numbers[0] == PATTERNS
        np.testing.assert_array_equal(bench.read(np.arange(400)), truth)
    ours, theirs = (bench.shelf.packed for bench in benches)
    assert {slot: bytes(chunk) for slot, chunk in ours.items()} == {
        slot: bytes(chunk) for slot, chunk in theirs.items()
    }


def test_marks_are_renewed_before_their_numbers_run_out():
    kernels = NumbaKernels()
    streams = Streams(FrameGeometry(1, 1, 8), 4, 1, 10, 20)
    workspace = kernels._workspace(streams)
    workspace.stamp = 2**32 - 2
    workspace.mark[:] = 5
    assert [workspace.next_stamp() for _ in range(3)] == [2**32 - 1, 1, 2]
    assert not workspace.mark.any()


@pytest.mark.parametrize("kernel", [write_rows, read_rows, plan_read, decode_rows])
def test_compiled_code_is_kept_only_as_long_as_all_sources_are_the_same(kernel):
    assert kernel._cache._cache_file._source_stamp[1] == jit._SOURCES
    assert not kernel._can_compile


def test_the_digest_changes_with_any_source(monkeypatch, tmp_path):
    (tmp_path / "a.py").write_text("one")
    (tmp_path / "b.py").write_text("two")
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "a.py"))
    before = jit._digest()
    (tmp_path / "b.py").write_text("three")
    assert jit._digest() != before


@pytest.mark.parametrize("array", [np.arange(8)[::2], np.arange(4, dtype=np.int32)])
def test_references_of_another_kind_are_refused(array):
    streams = Streams(FrameGeometry(1, 1, 8), 4, 1, 10, 20)
    with pytest.raises(TypeError):
        NumbaKernels().write(streams, array, np.zeros((4, 8), np.uint8), 0)


def test_a_chunk_at_the_end_of_a_page_is_not_read_beyond_it():
    """The last step of the chunk has size 0, which kernels never write, and the next page is protected."""
    bench = Workbench(frames.create("numba"), FrameGeometry(1, 1, 64), 20, 1, chunk=4)
    rows = np.zeros((6, 64), np.uint8)
    rows[:, 0] = np.arange(1, 7)
    bench.write(np.arange(6), rows)
    ((slot, packed),) = bench.shelf.packed.items()
    steps = 2 * 4 + 2 * 4  # behind the counts and the steps of four patches
    packed = np.concatenate([packed[:steps], np.zeros(2, np.uint8), packed[steps:]])
    packed[6] += 1
    memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    page = np.frombuffer(memory, np.uint8, mmap.PAGESIZE)
    page[-len(packed) :] = packed
    bench.shelf.packed[slot] = page[-len(packed) :]

    def read():
        libc = ctypes.CDLL(None, use_errno=True)
        address = ctypes.c_void_p(page.ctypes.data + mmap.PAGESIZE)
        assert libc.mprotect(address, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
        np.testing.assert_array_equal(bench.read(np.arange(6)), rows)

    in_forked_child(read)

"""Streams know which chunks observations reach into, and every change of them is complete or invisible."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers import frames
from sb3_extra_buffers.checkpoints import StateError
from sb3_extra_buffers.frames import FrameGeometry, Streams
from sb3_extra_buffers.frames.workbench import Workbench, play

GEOMETRY = FrameGeometry(4, 1, 60)


def bench(streams=2, cells=40):
    return Workbench(frames.create("numpy"), GEOMETRY, cells, streams, chunk=8)


def played(work, steps=150, seed=0):
    """Write what environments bring, and return which references stand for something."""
    streams, cells = work.streams.streams, work.streams.cells
    before = None
    for step, rows in enumerate(play(np.random.default_rng(seed), GEOMETRY, streams, steps)):
        if before is not None:
            work.write(np.arange(streams) + streams * (step % (cells // streams)), before, rows)
        before = rows
    return np.flatnonzero(work.streams.newest[: 2 * cells])


def slots_of(streams, reference):
    """All slots that an observation reaches into, frame by frame."""
    slot, offset = divmod(int(streams.newest[reference]) - 1, streams.room)
    found = {slot}
    for back in range(1, int(streams.reach[streams.pattern[reference]]) + 1):
        offset -= 1
        if offset < 0:
            slot = int(streams.previous[slot])
            offset = int(streams.sizes[slot]) - 1
        found.add(slot)
        assert back <= 120
    return found


def test_chunks_have_as_many_frames_as_their_last_observation_brings():
    work, rng = bench(streams=1), np.random.default_rng(0)
    rows = rng.integers(1, 256, (4, 240)).astype(np.uint8)
    rows[0, :180] = 0  # one frame; each of the others brings four
    work.write(np.arange(4), rows)
    (slot,) = work.shelf.packed
    assert work.streams.sizes[slot] == 1 + 4 + 4
    assert work.streams.sizes[work.streams.open[0]] == 4
    np.testing.assert_array_equal(work.read(np.arange(4)), rows)


def test_what_is_reached_is_what_following_each_frame_finds():
    work = bench()
    streams, references = work.streams, played(work)
    opened = set(streams.open.tolist())
    for reference in references.tolist():
        own = slots_of(streams, reference)
        assert streams.reached(np.array([reference])) == sorted(own - opened)
    for slot in range(int(streams.numbers[2])):
        chunks = np.zeros(streams.slots, np.bool_)
        chunks[slot] = True
        expected = [reference for reference in references.tolist() if slot in slots_of(streams, reference)]
        everything = np.arange(len(streams.newest) - streams.streams)
        assert np.flatnonzero(streams.reaching(chunks, everything)).tolist() == expected


def test_a_chunk_has_as_many_users_as_reach_into_it():
    work = bench()
    streams, references = work.streams, played(work)
    own = np.arange(len(streams.newest) - streams.streams, len(streams.newest))
    users = np.zeros(streams.slots, np.int64)
    users[streams.open] += 1
    for reference in [*references.tolist(), *own.tolist()]:
        users[sorted(slots_of(streams, reference))] += 1
    np.testing.assert_array_equal(streams.users, users)


def test_slots_without_users_are_used_again():
    work = bench(cells=4)
    played(work, steps=2000)
    assert work.streams.numbers[2] < 20


def test_cleared_streams_are_as_new():
    used, new = bench(), bench()
    played(used)
    used.streams.clear([used.shelf.zeros] * 2)
    used.shelf.packed.clear()
    used.shelf.bases.clear()
    assert not used.streams.newest.any()
    for work in (used, new):
        played(work, seed=1)
    for name in ("newest", "total", "open", "users", "last_number", "numbers"):
        np.testing.assert_array_equal(getattr(used.streams, name), getattr(new.streams, name))
    assert {slot: bytes(chunk) for slot, chunk in used.shelf.packed.items()} == {
        slot: bytes(chunk) for slot, chunk in new.shelf.packed.items()
    }


@pytest.mark.parametrize("name", frames.registry.names())
def test_a_pickle_goes_on_where_it_was_and_takes_no_workspace_along(name):
    work = Workbench(frames.create(name), GEOMETRY, 40, 2, chunk=8)
    played(work)
    twin = pickle.loads(pickle.dumps(work.streams))
    assert twin.workspace is None
    assert isinstance(twin, Streams)
    expected = work.read(np.arange(80))
    work.streams = twin
    np.testing.assert_array_equal(work.read(np.arange(80)), expected)
    played(work, seed=1)


@pytest.mark.parametrize("steps", [0, 1, 30])
def test_what_was_cleared_is_restored_elsewhere_as_it_is(steps):
    work, other = bench(), bench()
    played(work)
    work.streams.clear()
    if steps:
        played(work, steps)
    other.streams.restore(work.streams.state())
    for name in ("newest", "pattern", "previous", "sizes", "users", "numbers", "open"):
        np.testing.assert_array_equal(getattr(other.streams, name), getattr(work.streams, name), name)


def refused(change):
    """Whether numbers that were saved are refused once they were changed."""
    work, other = bench(), bench()
    played(work)
    state = work.streams.state()
    state.arrays = {name: array.copy() for name, array in state.arrays.items()}
    change(state.arrays, work.streams)
    try:
        other.streams.restore(state)
    except StateError:
        return True
    return False


def a_free_slot(arrays, streams):
    arrays["newest"][3] = 1 + streams.room * streams.slots


def a_frame_that_its_chunk_has_not(arrays, streams):
    slot = int(streams.open[0])
    arrays["newest"][0] = 1 + slot * streams.room + int(streams.sizes[slot])


def chunks_without_frames(arrays, streams):
    arrays["sizes"][(np.arange(len(arrays["sizes"])) != streams.open[0])] = 0


def a_slot_that_is_free_and_used(arrays, streams):
    arrays["numbers"][1] += 1


def a_chunk_that_is_filled_beyond_its_frames(arrays, streams):
    arrays["filling/filled"][0, 1] = streams.room * streams.geometry.frame_nbytes


def steps_that_are_not_counted(arrays, streams):
    arrays["filling/counts"][0, : int(streams.sizes[streams.open[0]])] = 60_000


def two_streams_in_one_chunk(arrays, streams):
    arrays["open"][:] = arrays["open"][0]


CHANGES = [
    a_free_slot,
    a_frame_that_its_chunk_has_not,
    chunks_without_frames,
    a_slot_that_is_free_and_used,
    a_chunk_that_is_filled_beyond_its_frames,
    steps_that_are_not_counted,
    two_streams_in_one_chunk,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_numbers_that_would_lead_kernels_elsewhere_are_refused(change):
    assert not refused(lambda arrays, streams: None)
    assert refused(change)


def test_the_parts_are_the_whole():
    streams = frames.Streams(frames.whole(300), 8, 2, 10, 20)
    content = np.random.default_rng(0).integers(0, 3, (5, 300)).astype(np.uint8)
    kernels, filling = frames.create("numpy"), streams.filling
    filling.begin(1, content[4])
    kernels.write(streams, np.array([1, 3, 5]), content[:3], 0)
    packed = filling.packed(1, 3)
    assert bytes(packed) == b"".join(bytes(part) for part in filling.parts(1, 3))
    assert filling.first_nbytes[1] == kernels.measure(content[4], content[0])
    assert filling.packed_nbytes == len(packed) - 3 * 2 - 7
    np.testing.assert_array_equal(filling.tail[1], content[2])
    filling.begin(1, content[3])
    assert bytes(filling.packed(1, 0)) == bytes(7)
    np.testing.assert_array_equal(filling.tail[1], content[3])


def test_a_pickle_has_no_room_for_the_worst_case():
    streams, content = frames.Streams(frames.whole(50_000), 20, 3, 10, 20), np.zeros((2, 50_000), np.uint8)
    content[0, 300:304], content[1, 9:18] = 5, 7
    frames.create("numpy").write(streams, np.array([1, 2]), content, 0)
    packed = pickle.dumps(streams)
    assert len(packed) < 470_000  # the base, the newest frame and the last observation of three streams
    twin = pickle.loads(packed)
    for name, part in vars(streams.filling).items():
        np.testing.assert_array_equal(getattr(twin.filling, name), part)

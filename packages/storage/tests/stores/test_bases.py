"""A base is kept while it pays, and no longer."""

import pickle

import numpy as np

from sb3_extra_buffers import frames
from sb3_extra_buffers.stores.bases import Bases

RNG = np.random.default_rng(0)
SCENE = RNG.integers(1, 256, 1000).astype(np.uint8)


def chunk(bases, slot, frame, stream=0):
    """Store a chunk that begins and ends with this frame; return the number of its base."""
    base = bases.open(stream, slot)
    number = bases._of_slot[slot]
    np.testing.assert_array_equal(base, bases.of([slot])[0])
    bases.learn(stream, frame, frames.create().measure(base, frame))
    return int(number)


def slightly_changed(frame, count):
    frame = frame.copy()
    frame[RNG.integers(0, len(frame), count)] ^= 1
    return frame


def make():
    return Bases(frames.create(), 2, 50, 1000)


def test_a_scene_that_stays_alike_gets_a_base_from_the_third_chunk_on():
    bases = make()
    numbers = [chunk(bases, slot, slightly_changed(SCENE, 5)) for slot in range(10)]
    assert numbers[:2] == [0, 0]
    assert set(numbers[2:]) == {1}


def test_noise_gets_none():
    bases = make()
    numbers = [chunk(bases, slot, RNG.integers(0, 256, 1000).astype(np.uint8)) for slot in range(10)]
    assert set(numbers) == {0}
    assert bases.nbytes == 2 * 1000  # the zeros, and a candidate


def test_another_scene_gets_another_base():
    bases, other = make(), RNG.integers(1, 256, 1000).astype(np.uint8)
    first = [chunk(bases, slot, slightly_changed(SCENE, 5)) for slot in range(5)]
    second = [chunk(bases, 5 + slot, slightly_changed(other, 5)) for slot in range(5)]
    assert first[-1] != second[-1] != 0


def test_a_base_that_is_drifting_away_is_replaced_when_it_has_cost_a_frame():
    bases, frame, numbers = make(), SCENE, []
    for slot in range(40):
        frame = slightly_changed(frame, 12)
        numbers.append(chunk(bases, slot, frame))
    assert 2 <= len(set(numbers) - {0}) <= 6


def test_a_base_goes_with_its_last_chunk():
    bases, other = make(), RNG.integers(1, 256, 1000).astype(np.uint8)
    for slot in range(5):
        chunk(bases, slot, slightly_changed(SCENE, 5))
    for slot in [0, 1, 2, 3, 4, 0, 1]:  # the first two of these still have the old base
        chunk(bases, slot, slightly_changed(other, 5))
    assert bases._frames[1] is None
    assert bases.nbytes <= 3 * 1000


def test_streams_have_bases_of_their_own():
    bases = make()
    for slot in range(4):
        chunk(bases, slot, slightly_changed(SCENE, 5), stream=0)
    assert chunk(bases, 10, SCENE, stream=1) == 0


def test_after_clearing_the_base_of_a_stream_is_still_good():
    bases = make()
    for slot in range(4):
        chunk(bases, slot, slightly_changed(SCENE, 5))
    bases.clear()
    assert chunk(bases, 0, slightly_changed(SCENE, 5)) == 1
    assert chunk(bases, 1, slightly_changed(SCENE, 5)) == 1


def test_a_copy_knows_where_its_own_frames_are():
    bases = make()
    for slot in range(4):
        chunk(bases, slot, slightly_changed(SCENE, 5))
    twin = pickle.loads(pickle.dumps(bases))
    (own_numbers, own), (other_numbers, other) = bases.table, twin.table
    np.testing.assert_array_equal(own_numbers, other_numbers)
    assert (own[own_numbers[:4]] != other[own_numbers[:4]]).all()
    np.testing.assert_array_equal(twin.of([3])[0], bases.of([3])[0])

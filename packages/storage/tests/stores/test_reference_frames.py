"""``ReferenceFrames``: a reference frame is kept while it makes chunks smaller."""

import copy
import pickle

import numpy as np
import pytest

from sb3_extra_buffers import frames
from sb3_extra_buffers.stores.reference_frames import ReferenceFrames

RNG = np.random.default_rng(0)
SCENE = RNG.integers(1, 256, 1000).astype(np.uint8)


def chunk(references, slot, frame, stream=0):
    """Store a chunk that begins and ends with this frame; return the number of its reference frame."""
    frame_before = references.open(stream, slot)
    number = references.of_slot[slot]
    np.testing.assert_array_equal(frame_before, references.of([slot])[0])
    references.learn(stream, frame, frames.create().measure(frame_before, frame))
    return int(number)


def slightly_changed(frame, count):
    frame = frame.copy()
    frame[RNG.integers(0, len(frame), count)] ^= 1
    return frame


def make():
    return ReferenceFrames(frames.create(), 2, 50, 1000)


def test_a_scene_that_changes_little_gets_a_reference_frame_from_the_third_chunk_on():
    references = make()
    numbers = [chunk(references, slot, slightly_changed(SCENE, 5)) for slot in range(10)]
    assert numbers[:2] == [0, 0]
    assert set(numbers[2:]) == {1}


def test_noise_gets_no_reference_frame():
    references = make()
    numbers = [chunk(references, slot, RNG.integers(0, 256, 1000).astype(np.uint8)) for slot in range(10)]
    assert set(numbers) == {0}
    assert references.nbytes == 2 * 1000  # the zeros, and a candidate


def test_another_scene_gets_another_reference_frame():
    references, other = make(), RNG.integers(1, 256, 1000).astype(np.uint8)
    first = [chunk(references, slot, slightly_changed(SCENE, 5)) for slot in range(5)]
    second = [chunk(references, 5 + slot, slightly_changed(other, 5)) for slot in range(5)]
    assert first[-1] != second[-1] != 0


def test_a_reference_frame_that_becomes_outdated_is_replaced_when_it_has_cost_a_frame():
    references, frame, numbers = make(), SCENE, []
    for slot in range(40):
        frame = slightly_changed(frame, 12)
        numbers.append(chunk(references, slot, frame))
    assert 2 <= len(set(numbers) - {0}) <= 6


def test_a_reference_frame_is_freed_with_its_last_chunk():
    references, other = make(), RNG.integers(1, 256, 1000).astype(np.uint8)
    for slot in range(5):
        chunk(references, slot, slightly_changed(SCENE, 5))
    for slot in [0, 1, 2, 3, 4, 0, 1]:  # the first two of these still have the old reference frame
        chunk(references, slot, slightly_changed(other, 5))
    assert references._frames[1] is None
    assert references.nbytes <= 3 * 1000


def test_each_stream_has_its_own_reference_frames():
    references = make()
    for slot in range(4):
        chunk(references, slot, slightly_changed(SCENE, 5), stream=0)
    assert chunk(references, 10, SCENE, stream=1) == 0


def test_reference_frames_are_kept_when_cleared():
    references = make()
    for slot in range(4):
        chunk(references, slot, slightly_changed(SCENE, 5))
    references.clear()
    assert chunk(references, 0, slightly_changed(SCENE, 5)) == 1
    assert chunk(references, 1, slightly_changed(SCENE, 5)) == 1


def restored(references):
    twin = make()
    twin.restore(references.state())
    return twin


@pytest.mark.parametrize("route", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)), restored])
def test_a_copy_has_addresses_of_its_own_frames(route):
    references = make()
    for slot in range(4):
        chunk(references, slot, slightly_changed(SCENE, 5))
    twin = route(references)
    own_numbers, own, other = references.of_slot, references.addresses, twin.addresses
    np.testing.assert_array_equal(own_numbers, twin.of_slot)
    assert (own[own_numbers[:4]] != other[own_numbers[:4]]).all()
    np.testing.assert_array_equal(twin.of([3])[0], references.of([3])[0])

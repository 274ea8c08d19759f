"""Batches have a limited size; steps that cannot be exported are refused."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import BufferStateError, ParameterError
from sb3_extra_buffers.recording import DummyRecordBuffer, FramelessRecordBuffer, RecordBuffer
from sb3_extra_buffers.recording.exports.batches import batches, select_steps


@pytest.mark.parametrize("kind", [RecordBuffer, FramelessRecordBuffer, DummyRecordBuffer])
def test_an_empty_recording_is_an_error(kind):
    with pytest.raises(BufferStateError, match=f"{kind.__name__}: cannot to_npz: nothing was recorded"):
        select_steps(kind(size=4), None, "to_npz")


@pytest.mark.parametrize("kind", [FramelessRecordBuffer, DummyRecordBuffer])
def test_exports_of_frames_refuse_recordings_without_frames(kind):
    buffer = kind(size=4)
    buffer.add(None, 0, 0)
    assert select_steps(buffer, None, "to_npz") == range(1)
    with pytest.raises(BufferStateError, match="it has no frames"):
        select_steps(buffer, None, "to_video", frames=True)


@pytest.mark.parametrize("steps", [range(0), range(3, 2), range(-1, 2), range(4, 12), range(0, 10, 2), range(5, 0, -1)])
def test_steps_out_of_range_are_refused(play, record, steps):
    buffer = record(RecordBuffer((20, 24), 3, 10), play(10))
    with pytest.raises(ParameterError, match="consecutive steps of the 10 that are kept"):
        select_steps(buffer, steps, "to_video")


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_batches_cover_all_steps_in_order(play, record, size):
    buffer = record(RecordBuffer((20, 24), 3, 10), play(14))
    found = list(batches(buffer, range(2, 9), size))
    assert [step for numbers, _ in found for step in numbers] == list(range(2, 9))
    assert all(len(numbers) == len(clip) <= size for numbers, clip in found)
    assert (np.concatenate([clip.frames for _, clip in found]) == buffer[2:9].frames).all()


def test_batches_of_large_frames_are_shorter():
    class Large:
        frame_shape = (1000, 1000, 3)

        def read(self, start, stop):
            return stop - start

    sizes = [count for _, count in batches(Large(), range(13))]
    assert sizes == [5, 5, 3]

"""The lookup finds the chunk, the offset and the target of every frame of a batch."""

import numpy as np

from sb3_extra_buffers import frames
from sb3_extra_buffers.frames import FrameGeometry, Streams
from sb3_extra_buffers.frames.numpy_kernels import find_frames

GEOMETRY = FrameGeometry(3, 1, 20)


def test_every_frame_is_found_once_with_its_chunk_and_its_target():
    streams = Streams(GEOMETRY, chunk=50, streams=1, cells=12, slots=4)
    shown = np.random.default_rng(0).integers(1, 256, (12, 20), np.uint8)
    stacks = np.stack([shown[i : i + 3] for i in range(10)]).reshape(10, 60)
    stacks[0, :20] = 0  # as after a reset
    frames.create("numpy").write(streams, np.arange(10), stacks, 0)
    asked = np.array([7, 0, 11, 7])  # one was never written, one is wanted twice
    found = find_frames(streams, asked)
    assert found.slots.tolist() == [0]
    assert found.which.tolist() == [0] * len(found.targets)
    assert sorted([*found.targets.tolist(), *found.blank.tolist()]) == list(range(12))
    assert found.blank.tolist() == [3, 6, 7, 8]
    # Frames of the stream in their order: the first stack brought two, each of the others one.
    by_target = dict(zip(found.targets.tolist(), found.offsets.tolist()))
    stream = shown[1:]
    for row, reference in enumerate(asked.tolist()):
        for column in range(3):
            if row * 3 + column in by_target:
                expected = stacks[reference].reshape(3, 20)[column]
                assert (stream[by_target[row * 3 + column]] == expected).all()


def test_observations_that_were_never_written_need_no_chunk():
    found = find_frames(Streams(GEOMETRY, chunk=50, streams=1, cells=12, slots=4), np.arange(5))
    assert (len(found.slots), len(found.targets), found.blank.tolist()) == (0, 0, list(range(15)))

"""Chunks that are being filled have the bytes of complete ones, and take no more along than is written."""

import pickle

import numpy as np

from sb3_extra_buffers import frames
from sb3_extra_buffers.frames.open_chunks import OpenChunks


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
    filling = OpenChunks(3, 20, 50_000)
    filling.steps[1, :4], filling.content[2, :9] = 5, 7
    filling.filled[1:] = (4, 0), (0, 9)
    packed = pickle.dumps(filling)
    assert len(packed) < 320_000  # the base and the newest frame of three streams
    twin = pickle.loads(packed)
    for name, part in vars(filling).items():
        np.testing.assert_array_equal(getattr(twin, name), part)

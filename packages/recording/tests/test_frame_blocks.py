"""Frames are encoded to blocks and decoded, with every codec."""

import numpy as np
import pytest

from sb3_extra_buffers import codecs
from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.recording.frame_blocks import DIFFERENCES, PLAIN, FrameBlocks


@pytest.mark.parametrize("name", codecs.names())
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "bool", "float32", "int16"])
def test_decoding_restores_every_bit(name, channels, dtype):
    random = np.random.default_rng(1)
    frames = random.normal(0, 40, (21, 8, 9, channels)).astype(dtype)
    frames[5:15] = frames[4]
    blocks = FrameBlocks(CodecSpec(name), (8, 9, channels), np.dtype(dtype))
    for count in (1, 2, 21):
        payload, how = blocks.encode(frames[:count])
        found = blocks.decode(payload, count, how)
        assert found.dtype == dtype
        assert found.tobytes() == frames[:count].tobytes()


def test_the_smaller_preparation_is_used():
    still = np.repeat(np.random.default_rng(0).integers(0, 256, (1, 40, 40, 1)).astype(np.uint8), 16, axis=0)
    flat = np.random.default_rng(0).integers(0, 256, (16, 1, 1, 1)).astype(np.uint8) * np.ones((1, 40, 40, 1), np.uint8)
    noisy = still.copy()
    noisy[::2] = flat[::2]
    for frames, expected in ((still, DIFFERENCES), (noisy, PLAIN)):
        blocks = FrameBlocks(CodecSpec("gzip"), (40, 40, 1), np.dtype(np.uint8))
        payload, how = blocks.encode(frames)
        assert how == expected
        assert (blocks.decode(payload, 16, how) == frames).all()


def test_the_preparation_is_chosen_again_after_some_blocks():
    still = np.zeros((4, 40, 40, 1), np.uint8) + np.random.default_rng(0).integers(0, 256, (40, 40, 1)).astype(np.uint8)
    flat = np.zeros((4, 40, 40, 1), np.uint8) + np.uint8([3, 90, 7, 200]).reshape(4, 1, 1, 1)
    noisy = np.where(np.arange(4).reshape(4, 1, 1, 1) % 2, flat, still)
    blocks = FrameBlocks(CodecSpec("gzip"), (40, 40, 1), np.dtype(np.uint8))
    chosen = [blocks.encode(still if number < 3 else noisy)[1] for number in range(12)]
    assert chosen == [DIFFERENCES] * 8 + [PLAIN] * 4


def test_blocks_of_large_frames_hold_fewer_frames():
    counts = [
        FrameBlocks(CodecSpec("none"), (side, side, 1), np.dtype(np.uint8)).frames for side in (1, 84, 240, 600, 5000)
    ]
    assert counts == [256, 256, 145, 23, 16]

"""Recorded steps are restored exactly, with every codec and layout, before and after the wrap."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sb3_extra_buffers import codecs
from sb3_extra_buffers.recording import RecordBuffer

STORAGE = [
    {},
    {"prefer": "balanced"},
    {"prefer": "memory"},
    {"layout": "frames"},
    {"layout": "cells"},
    {"compression_method": "none", "layout": "frames"},
    *({"compression_method": name} for name in codecs.names()),
    *({"compression_method": name, "layout": "cells"} for name in codecs.names()),
]


@pytest.mark.parametrize("storage", STORAGE, ids=str)
def test_steps_are_restored_before_and_after_the_wrap(storage, play, record, expect):
    steps = play(70, features=lambda random: (int(random.integers(200)), float(random.normal())))
    buffer = RecordBuffer((20, 24), 3, 30, ["uint8", "float32", "uint8", "float64"], **storage)
    for count, step in enumerate(steps, 1):
        record(buffer, [step])
        if count % 7 == 0 or count in (29, 30, 31, 59, 60, 61):
            expect(buffer, steps[:count])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint32", "float16", "float32", "float64"])
@pytest.mark.parametrize("method", ["auto", "none", "gzip"])
def test_frames_of_every_dtype_are_restored_exactly(dtype, method):
    random = np.random.default_rng(3)
    frames = random.normal(0, 50, (12, 16, 17, 2)).astype(dtype)
    buffer = RecordBuffer((16, 17), 2, 8, [dtype, "float32"], compression_method=method)
    for frame in frames:
        buffer.add(frame, 0, 0)
    assert buffer[:].frames.dtype == dtype
    assert buffer[:].frames.tobytes() == frames[-8:].tobytes()


@given(data=st.data(), size=st.integers(1, 9), method=st.sampled_from(["auto", "none", "rle"]))
@settings(max_examples=40, deadline=None)
def test_a_buffer_behaves_like_a_list_of_the_newest_steps(data, size, method):
    buffer = RecordBuffer((16, 16), 4, size, compression_method=method)
    expected = []
    for number in range(data.draw(st.integers(0, 25))):
        frame = np.full((16, 16, 4), data.draw(st.integers(0, 3)), np.uint8)
        done = data.draw(st.booleans())
        buffer.add(frame, number, number, done=done)
        expected = [*expected, (frame, number, done)][-size:]
    assert len(buffer) == len(expected)
    part = slice(
        *(data.draw(st.none() | st.integers(-12, 12)) for _ in range(2)), data.draw(st.sampled_from([1, 2, -1]))
    )
    clip = buffer[part]
    assert clip.actions.tolist() == [number for _, number, _ in expected[part]]
    assert [frame.tobytes() for frame in clip.frames] == [frame.tobytes() for frame, _, _ in expected[part]]
    assert clip.dones.tolist() == [done for _, _, done in expected[part]]
    assert [step.action for step in buffer] == [number for _, number, _ in expected]
    ends = [step + 1 for step, (_, _, done) in enumerate(expected) if done]
    bounds = sorted({0, *ends, len(expected)})
    assert buffer.episodes == [range(*pair) for pair in pairwise(bounds)]


def test_each_frame_of_a_stack_is_stored_once(record):
    random = np.random.default_rng(0)
    scenes = random.integers(0, 256, (203, 40, 40)).astype(np.uint8)
    buffer = RecordBuffer((40, 40), 4, 200, channels="first")
    for number in range(200):
        buffer.add(scenes[number : number + 4], 0, 0)
    expected = np.stack([scenes[number : number + 4] for number in range(200)]).transpose(0, 2, 3, 1)
    assert (buffer[:].frames == expected).all()
    assert "stacked last" in buffer.memory.codec
    assert buffer.memory.stored_nbytes < 1.2 * scenes.nbytes  # not four times as much


def test_the_frames_property_has_channels_first(play, record):
    steps = play(8)
    for method in ("auto", "none"):
        frames = record(RecordBuffer((20, 24), 3, 5, compression_method=method), steps).frames
        assert frames.shape == (5, 3, 20, 24)
        assert (frames[7 % 5] == steps[7].frame.transpose(2, 0, 1)).all()


def test_later_steps_do_not_change_a_clip(play, record):
    steps = play(20)
    for method in ("auto", "none"):
        buffer = record(RecordBuffer((20, 24), 3, 10, compression_method=method), steps[:10])
        clip = buffer[:]
        record(buffer, steps[10:])
        buffer[:].frames[:] = 1
        assert clip.frames.tobytes() == np.array([step.frame for step in steps[:10]]).tobytes()
        assert buffer[-1].frame.tobytes() == steps[-1].frame.tobytes()


def test_compressed_frames_take_less_memory(play, record):
    buffer = record(RecordBuffer((60, 80), 3, 300), play(300, (60, 80, 3)))
    assert buffer.memory.raw_nbytes == 300 * 60 * 80 * 3
    assert buffer.memory.ratio > 5
    plain = record(RecordBuffer((60, 80), 3, 300, compression_method="none"), play(300, (60, 80, 3)))
    assert plain.memory.ratio == 1.0


def test_changing_a_frame_after_adding_it_has_no_effect():
    for method in ("auto", "none"):
        buffer = RecordBuffer((16, 16), 3, 4, compression_method=method)
        frame = np.zeros((16, 16, 3), np.uint8)
        buffer.add(frame, 0, 0)
        frame[:] = 9
        buffer.add(frame, 0, 0)
        assert [step.frame.max() for step in buffer] == [0, 9]

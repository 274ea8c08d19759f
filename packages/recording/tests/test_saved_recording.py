"""A saved recording reads like the buffer, without loading the file."""

import numpy as np
import pytest

from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import FileError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer, SavedRecording, load

DTYPES = ["uint8", "float32", "uint8", "float64"]


def features(random):
    return int(random.integers(200)), float(random.normal())


@pytest.mark.parametrize("name", ["auto", *codecs.names()])
@pytest.mark.parametrize("count", [1, 30, 47])
def test_a_saved_recording_reads_like_the_buffer(name, count, play, record, expect, tmp_path):
    steps = play(count, features=features)
    buffer = record(RecordBuffer((20, 24), 3, 30, DTYPES), steps)
    size = buffer.save(tmp_path / "recording", name)
    saved = load(tmp_path / "recording", verify=True)
    assert saved.nbytes == size
    assert isinstance(saved, SavedRecording)
    expect(saved, steps)
    assert saved.episodes == buffer.episodes
    assert (saved.frame_shape, saved.frame_dtype, saved.steps) == ((20, 24, 3), np.uint8, count)
    assert saved.recorded_by == "RecordBuffer"
    assert [step.reward for step in saved] == [step.reward for step in buffer]
    ours, theirs = buffer.statistics(), saved.statistics()
    assert ours.returns.tolist() == theirs.returns.tolist()
    assert name == "auto" or saved.memory.codec.startswith(name)


@pytest.mark.parametrize("action", [lambda random: random.normal(size=3).astype(np.float32), lambda random: 0.5])
def test_actions_of_any_kind_are_saved(action, play, record, expect, tmp_path):
    steps = play(12, action=action)
    record(FramelessRecordBuffer(size=9), steps).save(tmp_path / "recording")
    expect(load(tmp_path / "recording"), steps)


def test_steps_can_be_read_in_any_order(play, record, tmp_path):
    steps = play(600, (4, 5, 1))  # several blocks
    record(RecordBuffer((4, 5), 1, 600), steps).save(tmp_path / "recording")
    saved = load(tmp_path / "recording")
    frames = np.array([step.frame for step in steps])
    for wanted in ([599, 0, 300, 300, 255, 256, 1], [], list(range(250, 262)), list(range(599, -1, -100))):
        assert (saved.gather(wanted).frames == frames[wanted]).all()
    assert (saved[::-50].frames == frames[::-50]).all()
    assert (saved[257].frame == frames[257]).all()


def test_a_saved_recording_can_be_saved_again(play, record, expect, tmp_path):
    steps = play(20)
    record(RecordBuffer((20, 24), 3, 15), steps).save(tmp_path / "first", "gzip")
    load(tmp_path / "first").save(tmp_path / "second", "rle")
    expect(load(tmp_path / "second"), steps)


@pytest.mark.parametrize("size", [None, 30, 12, 100])
def test_a_loaded_buffer_continues_recording(size, play, record, expect, tmp_path):
    steps = play(90, features=features)
    buffer = record(RecordBuffer((20, 24), 3, 30, DTYPES), steps[:50])
    buffer.save(tmp_path / "recording")
    loaded = RecordBuffer.load(tmp_path / "recording", size, compression_method="rle")
    assert loaded.max_size == (size or 30)
    kept = steps[50 - min(30, loaded.max_size) : 50]
    expect(loaded, kept)
    assert loaded.steps == 50
    record(loaded, steps[50:])
    expect(loaded, kept + steps[50:])
    assert loaded.steps == 90


def test_begins_whole_is_saved_and_loaded(play, record, tmp_path):
    steps = play(30, episode=10)
    for size, whole in ((30, True), (25, False), (20, True)):
        record(FramelessRecordBuffer(size=size), steps).save(tmp_path / "recording")
        assert load(tmp_path / "recording").begins_whole is whole
        for kept in (20, 15):
            assert FramelessRecordBuffer.load(tmp_path / "recording", kept).begins_whole is (kept == 20)


def test_a_frameless_buffer_loads_without_frames(play, record, expect, tmp_path):
    steps = play(20)
    record(RecordBuffer((20, 24), 3, 15), steps).save(tmp_path / "recording")
    expect(FramelessRecordBuffer.load(tmp_path / "recording"), steps)


@pytest.mark.parametrize("prefer", ["speed", "memory"])
@pytest.mark.parametrize("kind", ["a scene that moves", "a stack", "noise"])
def test_a_file_is_not_larger_than_the_recording_in_memory(prefer, kind, play, record, tmp_path):
    random = np.random.default_rng(0)
    scene = [step.frame[:, :, 0] for step in play(203, (40, 48, 3))]
    stacks = [np.stack(scene[number : number + 4], axis=2) for number in range(200)]
    frames = stacks if kind == "a stack" else list(random.integers(0, 256, (200, 40, 48, 4)).astype(np.uint8))
    if kind == "a scene that moves":
        frames = [np.repeat(frame[:, :, None], 4, axis=2) for frame in scene[:200]]
    buffer = RecordBuffer((40, 48), 4, 200, prefer=prefer)
    for frame in frames:
        buffer.add(frame, 0, 0)
    columns = sum(array.nbytes for array in (buffer.rewards, buffer.actions, buffer.dones))
    size = buffer.save(tmp_path / "recording")
    assert size <= buffer.memory.stored_nbytes + buffer.memory.overhead + columns
    assert (load(tmp_path / "recording")[:].frames == np.array(frames)).all()


@pytest.mark.parametrize("name", ["none", "gzip", "rle"])
def test_a_flipped_bit_is_an_error_when_the_file_is_opened_or_read(name, play, record, tmp_path):
    path = tmp_path / "recording"
    record(RecordBuffer((20, 24), 3, 30, DTYPES), play(30, features=features)).save(path, name)
    content, whole = path.read_bytes(), list(load(path)[:])
    places = [*range(0, len(content), 97), *range(len(content) - 900, len(content))]
    for number, place in enumerate(places):
        damaged = bytearray(content)
        damaged[place] ^= 1 << number % 8
        path.write_bytes(damaged)
        with pytest.raises(FileError):
            load(path)[:]
        with pytest.raises(FileError):
            RecordBuffer.load(path)
    path.write_bytes(content)
    assert len(whole) == len(list(load(path)[:]))

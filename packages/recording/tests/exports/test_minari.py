"""Minari opens the datasets and restores every value."""

import minari
import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers.errors import BufferStateError, FileWriteError, ObservationError, ParameterError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer
from sb3_extra_buffers.recording.exports.minari import transitions_of

FORMATS = ["parquet", "arrow", "hdf5"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """The folder of Minari's datasets."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


def same(found, buffer, terminal_frames, truncation_feature=None):
    """Assert that every episode is restored exactly."""
    clips = [buffer.read(steps.start, steps.stop) for steps in buffer.episodes]
    expected = [transitions_of(clip, terminal_frames, truncation_feature) for clip in clips]
    expected = [episode for episode in expected if len(episode.actions)]
    assert found.total_episodes == len(expected)
    assert found.total_steps == sum(len(episode.actions) for episode in expected)
    for one, other in zip(found.iterate_episodes(), expected):
        for name in ("observations", "actions", "rewards", "terminations", "truncations"):
            ours, theirs = getattr(other, name), np.asarray(getattr(one, name))
            assert theirs.dtype == ours.dtype, name
            assert theirs.shape == ours.shape, name
            assert theirs.tobytes() == ours.tobytes(), name
        for name, values in other.infos.items():
            assert np.asarray(one.infos[name]).tolist() == values.tolist()


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("terminal_frames", [True, False])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_restored_exactly(play, record, data_format, terminal_frames, channels):
    # Large enough for Minari to treat it as an image, which it stores as JPEG by default.
    buffer = record(RecordBuffer((40, 44), channels, 17), play(23, shape=(40, 44, channels)))
    options = {"terminal_frames": terminal_frames, "data_format": data_format}
    returned = buffer.to_minari("doom/basic-v0", **options, about={"author": "somebody", "description": "A room."})
    for found in (returned, minari.load_dataset("doom/basic-v0")):
        same(found, buffer, terminal_frames)
        assert found.observation_space == spaces.Box(0, 255, (40, 44, channels), np.uint8)
        assert found.action_space == spaces.Discrete(6)
        assert not found.storage.jpeg_encoding
        assert found.storage.metadata["author"] == {"somebody"}
        assert found.storage.metadata["description"] == "A room."


@pytest.mark.parametrize("data_format", FORMATS)
def test_vector_actions_and_features_are_restored(play, record, data_format):
    steps = play(
        30,
        action=lambda random: random.normal(size=3).astype(np.float32),
        features=lambda random: [bool(random.integers(2)), float(np.float32(random.normal()))],
    )
    buffer = record(RecordBuffer((20, 24), 3, 30, [np.uint8, np.float64, np.bool_, np.float32]), steps)
    found = buffer.to_minari("a-v0", terminal_frames=True, truncation_feature=0, data_format=data_format)
    same(found, buffer, True, 0)
    ends = [buffer[steps.stop - 1] for steps in buffer.episodes]
    cut_off = [bool(end.features["0"]) or not end.done for end in ends]
    assert len(set(cut_off)) == 2
    assert [bool(episode.truncations[-1]) for episode in found.iterate_episodes()] == cut_off


@pytest.mark.parametrize("dtype", [np.float32, np.int16])
def test_frames_of_other_dtypes_are_restored(dtype):
    random = np.random.default_rng(0)
    buffer = RecordBuffer((6, 7), 2, 9, [dtype, np.float32])
    for number in range(9):
        buffer.add((random.normal(size=(6, 7, 2)) * 50).astype(dtype), 0, [number - 4, 0], done=number == 5)
    found = buffer.to_minari("a-v0", terminal_frames=True)
    same(found, buffer, True)
    assert found.action_space == spaces.Box(np.array([-4, 0]), np.array([4, 0]), dtype=np.int64)


def test_spaces_can_be_given(play, record):
    buffer = record(RecordBuffer((20, 24), 3, 9), play(9))
    given = {"action_space": spaces.Discrete(18), "observation_space": spaces.Box(0, 255, (20, 24, 3), np.uint8)}
    assert buffer.to_minari("a-v0", terminal_frames=True, **given).action_space == spaces.Discrete(18)


def test_a_folder_can_be_given(play, record, tmp_path):
    buffer = record(RecordBuffer((20, 24), 3, 9), play(9))
    (tmp_path / "mine").mkdir()
    found = buffer.to_minari("space/name-v2", terminal_frames=False, folder=tmp_path / "mine")
    same(found, buffer, False)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (tmp_path / "mine" / "space" / "name-v2" / "data" / "metadata.json").exists()


@pytest.mark.parametrize("data_format", FORMATS)
def test_a_folder_may_be_relative(play, record, home, monkeypatch, data_format):
    monkeypatch.chdir(home)
    buffer = record(RecordBuffer((20, 24), 3, 9), play(9))
    same(buffer.to_minari("space/name-v2", terminal_frames=True, folder=".", data_format=data_format), buffer, True)


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        ({"dataset_id": "no version"}, ParameterError, "dataset_id"),
        ({"dataset_id": "a/b-v0"}, ParameterError, "more than one letter"),
        ({"data_format": "csv"}, ParameterError, "parquet, arrow, hdf5"),
        ({"truncation_feature": 0}, ParameterError, "no features"),
        ({"folder": "missing"}, FileWriteError, "missing"),
    ],
)
def test_bad_input_leaves_nothing(play, record, home, monkeypatch, options, error, word):
    monkeypatch.chdir(home)
    buffer = record(RecordBuffer((20, 24), 3, 9), play(9))
    with pytest.raises(error, match=word):
        buffer.to_minari(**{"dataset_id": "space/name-v0", "terminal_frames": True, **options})
    assert list(home.iterdir()) == []


def test_recordings_without_transitions_are_refused(home):
    with pytest.raises(BufferStateError, match="nothing was recorded"):
        RecordBuffer(size=3).to_minari("a-v0", terminal_frames=True)
    frameless = FramelessRecordBuffer(size=3)
    frameless.add(None, 0, 0)
    with pytest.raises(BufferStateError, match="it has no frames"):
        frameless.to_minari("a-v0", terminal_frames=True)
    single = RecordBuffer((4, 4), 1, 3)
    single.add(np.zeros((4, 4, 1), np.uint8), 0, 0)
    with pytest.raises(BufferStateError, match="no episode has an action"):
        single.to_minari("a-v0", terminal_frames=True)
    truth = RecordBuffer((4, 4), 1, 3, [np.bool_, np.float32])
    truth.add(np.zeros((4, 4, 1), np.bool_), 0, 0)
    with pytest.raises(ObservationError, match="Record frames as uint8"):
        truth.to_minari("a-v0", terminal_frames=True)
    assert list(home.iterdir()) == []


def test_an_existing_dataset_is_not_changed(play, record):
    buffer = record(RecordBuffer((20, 24), 3, 9), play(9))
    buffer.to_minari("a-v0", terminal_frames=True)
    with pytest.raises(FileWriteError, match="it already exists"):
        buffer.to_minari("a-v0", terminal_frames=False)
    same(minari.load_dataset("a-v0"), buffer, True)

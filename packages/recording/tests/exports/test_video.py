"""Videos have one correct image per step."""

from itertools import pairwise

import av
import numpy as np
import pytest
from PIL import Image

from sb3_extra_buffers.errors import BufferStateError, FileWriteError, ObservationError, ParameterError
from sb3_extra_buffers.recording import DummyRecordBuffer, FramelessRecordBuffer, RecordBuffer
from sb3_extra_buffers.recording.exports import label_colors
from sb3_extra_buffers.recording.exports.drawing import ACCENT, END, GROOVE


def decoded(path):
    with av.open(str(path)) as container:
        return np.stack([frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)])


def decoded_gif(path):
    with Image.open(path) as image:
        pictures = []
        for number in range(image.n_frames):
            image.seek(number)
            pictures.append((np.asarray(image.convert("RGB")), image.info["duration"]))
    return np.stack([picture for picture, _ in pictures]), [duration for _, duration in pictures]


@pytest.fixture
def shades():
    """A recording of frames of one shade each."""
    buffer = RecordBuffer((20, 30), 1, 16)
    for number in range(16):
        buffer.add(np.full((20, 30, 1), number * 16, np.uint8), number % 3 - 1, number, done=number == 9)
    return buffer


def test_an_mp4_has_one_image_per_step_in_order(shades, tmp_path):
    path = shades.to_video(tmp_path / "a.mp4", fps=12.5, progress=False)
    found = decoded(path)
    assert found.shape[0] == 16
    height, width = 12 * 20, 12 * 30
    assert found.shape[2] == width
    assert found.shape[1] > height
    for number, picture in enumerate(found):
        inner = picture[: height - 8]  # colors of the overlay bleed over its edge
        assert np.abs(inner.astype(int) - number * 16).max() <= 3
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.codec_context.name == "h264"
        assert stream.codec_context.pix_fmt == "yuv420p"
        assert stream.average_rate == 12.5
        assert stream.frames == 16


def test_colors_are_kept_up_to_rounding(tmp_path):
    colors = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [17, 99, 201]], np.uint8)
    buffer = RecordBuffer((20, 30), 3, 5)
    for color in colors:
        buffer.add(np.broadcast_to(color, (20, 30, 3)), 0, 0)
    found = decoded(buffer.to_video(tmp_path / "a.mp4"))
    assert np.abs(found[:, 100, 100].astype(int) - colors).max() <= 4


def test_the_bar_shows_the_progress_of_the_episode(shades, tmp_path):
    found = decoded(shades.to_video(tmp_path / "a.mp4", crf=0))
    bars = found[:, 241].astype(int)  # below the frames
    colors = np.array([GROOVE, ACCENT, END])
    for step, share in ((0, 0.1), (4, 0.5), (9, 1), (12, 0.5), (15, 1)):
        nearest = np.abs(bars[step][:, np.newaxis] - colors).sum(axis=2).argmin(axis=1)
        assert abs((nearest == (2 if step == 9 else 1)).mean() - share) < 0.02
        assert abs((nearest == 0).mean() - (1 - share)) < 0.02


def test_the_overlay_changes_with_the_step(shades, tmp_path):
    plain = decoded(shades.to_video(tmp_path / "a.mp4", overlay=False))
    assert plain.shape[1:3] == (240, 360)
    below = decoded(shades.to_video(tmp_path / "b.mp4", crf=0))[:, 246:]
    assert (below > 200).any(axis=(1, 2, 3)).all()  # letters are bright
    assert all(np.abs(first.astype(int) - second).max() > 100 for first, second in pairwise(below))


def test_names_of_actions_are_shown(shades, tmp_path):
    without = decoded(shades.to_video(tmp_path / "a.mp4", steps=range(3)))
    named = decoded(shades.to_video(tmp_path / "b.mp4", steps=range(3), action_names=["left", "right"]))
    changed = [np.abs(one.astype(int) - other).max() > 100 for one, other in zip(without, named)]
    assert changed == [True, True, False]  # 2 has no name


@pytest.mark.parametrize("size", [(31, 33), (240, 241), (7, 300)])
@pytest.mark.parametrize("overlay", [True, False])
def test_odd_sizes_are_made_even(tmp_path, size, overlay):
    buffer = RecordBuffer(size, 3, 2)
    frame = np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)
    buffer.add(frame, 0, 0)
    found = decoded(buffer.to_video(tmp_path / "a.mp4", scale=1, overlay=overlay))
    assert found.shape[0] == 1
    assert found.shape[1] % 2 == found.shape[2] % 2 == 0
    assert 0 <= found.shape[2] - max(size[1], 240 if overlay else 0) <= 1


def test_steps_can_be_selected_and_are_read_in_batches(shades, tmp_path, monkeypatch):
    monkeypatch.setattr("sb3_extra_buffers.recording.exports.video._BATCH_PIXELS", 20 * 30 * 4)
    found = decoded(shades.to_video(tmp_path / "a.mp4", steps=shades.episodes[1], scale=2, overlay=False))
    assert np.abs(found[:, 20, 30, 0].astype(int) - np.arange(10, 16) * 16).max() <= 3


def test_a_gif_of_up_to_256_colors_is_exact(tmp_path):
    random = np.random.default_rng(0)
    buffer = RecordBuffer((24, 30), 1, 12)
    labels = random.integers(0, 40, (12, 24, 30, 1), np.uint8)
    labels[5] = labels[4]  # an unchanged image counts, too
    for number, frame in enumerate(labels):
        buffer.add(frame, 0, number)
    path = buffer.to_video(tmp_path / "a.gif", fps=25, scale=3, palette="labels", overlay=False)
    pictures, durations = decoded_gif(path)
    expected = label_colors()[labels[..., 0]].repeat(3, 1).repeat(3, 2)
    assert (pictures == expected).all()
    assert durations == [40] * 12


def test_a_gif_of_many_colors_is_approximated(tmp_path):
    rows, columns = np.mgrid[:64, :64]
    buffer = RecordBuffer((64, 64), 3, 3)
    frames = [np.stack([rows * 4, columns * 4, rows * 0 + 80 * n], -1).astype(np.uint8) for n in range(3)]
    for frame in frames:
        buffer.add(frame, 0, 0)
    pictures, _ = decoded_gif(buffer.to_video(tmp_path / "a.gif", scale=1, overlay=False))
    assert len(pictures) == 3
    assert np.abs(pictures.astype(int) - frames).mean() < 8


@pytest.mark.parametrize(
    ("name", "options", "word"),
    [
        ("a.avi", {}, ".mp4 or .gif"),
        ("a", {}, ".mp4 or .gif"),
        ("a.mp4", {"fps": 0}, "fps"),
        ("a.gif", {"fps": 60}, "at most 50"),
        ("a.mp4", {"scale": 0}, "scale"),
        ("a.mp4", {"scale": 1.5}, "scale"),
        ("a.mp4", {"crf": 52}, "crf"),
        ("a.mp4", {"steps": range(3, 99)}, "steps"),
        ("a.mp4", {"channels": 5}, "channels"),
        ("a.mp4", {"palette": "jet"}, "palette"),
    ],
)
def test_invalid_arguments_are_refused_before_a_file_is_created(shades, tmp_path, name, options, word):
    with pytest.raises(ParameterError, match=word):
        shades.to_video(tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.mp4", "a.gif"])
def test_a_frame_that_cannot_be_shown_keeps_the_old_file(shades, tmp_path, name, monkeypatch):
    monkeypatch.setattr("sb3_extra_buffers.recording.exports.video._BATCH_PIXELS", 20 * 30)
    (tmp_path / name).write_bytes(b"old")
    with pytest.raises(ObservationError, match="a pixel is 32, expected labels from 0 to 30"):
        # The third frame has no color; the error occurs while the file is being written.
        shades.to_video(tmp_path / name, palette=np.zeros((31, 3), int))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"old"


def test_recordings_without_frames_or_steps_are_refused(tmp_path):
    frameless, dummy = FramelessRecordBuffer(size=3), DummyRecordBuffer(size=3)
    for buffer in (frameless, dummy):
        buffer.add(None, 0, 0)
    with pytest.raises(BufferStateError, match="it has no frames"):
        frameless.to_video(tmp_path / "a.mp4")
    assert dummy.to_video(tmp_path / "a.mp4") is None
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(BufferStateError, match="nothing was recorded"):
        RecordBuffer(size=3).to_video(tmp_path / "a.mp4")


def test_a_path_that_cannot_be_written_is_an_error(shades, tmp_path):
    with pytest.raises(FileWriteError, match="there is no folder"):
        shades.to_video(tmp_path / "missing" / "a.mp4")

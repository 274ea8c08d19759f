"""Contact sheets of recordings."""

import numpy as np
import pytest
from PIL import Image

from sb3_extra_buffers.errors import BufferStateError, FileWriteError, ParameterError
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer
from sb3_extra_buffers.recording.exports import label_colors
from sb3_extra_buffers.recording.exports.contact_sheet import evenly_spaced

NAMES = (None, ["up", "down"], ["up", "down"])


@pytest.fixture
def buffer():
    buffer = RecordBuffer((40, 80), 1, 50)
    for number in range(50):
        buffer.add(np.full((40, 80, 1), number * 5, np.uint8), number % 3 - 1, number, done=number == 19)
    return buffer


def tiles(path, columns, rows, size=(80, 160), gap=8):
    with Image.open(path) as image:
        assert image.format == "PNG"
        sheet = np.asarray(image)
    below = (sheet.shape[0] - gap) // rows - size[0] - gap
    assert sheet.shape[1] == columns * (size[1] + gap) + gap
    tops = [gap + row * (size[0] + below + gap) for row in range(rows)]
    lefts = [gap + column * (size[1] + gap) for column in range(columns)]
    return [sheet[top : top + size[0], left : left + size[1]] for top in tops for left in lefts]


def test_frames_are_in_order_and_evenly_spaced(buffer, tmp_path):
    found = tiles(buffer.contact_sheet(tmp_path / "a.png", columns=4, rows=2), 4, 2)
    for tile, step in zip(found, [0, 7, 14, 21, 28, 35, 42, 49]):
        assert (tile == step * 5).all()


def test_each_frame_has_a_caption(buffer, tmp_path):
    with Image.open(buffer.contact_sheet(tmp_path / "a.png", columns=3, rows=1)) as image:
        below = np.asarray(image)[8 + 80 :]
    for column in range(3):
        part = below[:, 8 + column * 168 : 8 + column * 168 + 160]
        assert (part > 200).any()


def test_captions_show_names_of_actions(buffer, tmp_path):
    sheets = [buffer.contact_sheet(tmp_path / f"{n}.png", rows=1, action_names=names) for n, names in enumerate(NAMES)]
    numbers, names, again = (path.read_bytes() for path in sheets)
    assert numbers != names
    assert names == again


def test_fewer_steps_make_a_smaller_sheet(buffer, tmp_path):
    found = tiles(buffer.contact_sheet(tmp_path / "a.png", columns=4, rows=9, steps=range(10, 13)), 3, 1)
    assert [tile[0, 0, 0] for tile in found] == [50, 55, 60]


def test_labels_are_shown_in_colors(buffer, tmp_path):
    found = tiles(buffer.contact_sheet(tmp_path / "a.png", columns=2, rows=1, palette="labels"), 2, 1)
    assert (found[1] == label_colors()[245]).all()


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10, 24])
def test_selected_steps_are_evenly_spaced(count):
    chosen = evenly_spaced(range(5, 15), count)
    assert len(chosen) == min(count, 10)
    assert chosen[0] == 5
    if count > 1:
        assert chosen[-1] == 14
        distances = np.diff(chosen)
        assert distances.min() >= 1
        assert np.ptp(distances) <= 1


@pytest.mark.parametrize("options", [{"columns": 0}, {"rows": 1.5}, {"scale": -1}, {"steps": range(60)}])
def test_invalid_arguments_are_refused(buffer, tmp_path, options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        buffer.contact_sheet(tmp_path / "a.png", **options)
    with pytest.raises(ParameterError, match=r"\.png"):
        buffer.contact_sheet(tmp_path / "a.jpg")
    assert list(tmp_path.iterdir()) == []


def test_recordings_without_frames_and_missing_folders_are_refused(buffer, tmp_path):
    frameless = FramelessRecordBuffer(size=3)
    with pytest.raises(BufferStateError, match="nothing was recorded"):
        frameless.contact_sheet(tmp_path / "a.png")
    frameless.add(None, 0, 0)
    with pytest.raises(BufferStateError, match="it has no frames"):
        frameless.contact_sheet(tmp_path / "a.png")
    with pytest.raises(FileWriteError, match="there is no folder"):
        buffer.contact_sheet(tmp_path / "missing" / "a.png")

"""Invalid input raises an error that explains it, and changes nothing."""

import numpy as np
import pytest

from sb3_extra_buffers.errors import (
    BufferStateError,
    ExtraBuffersError,
    ObservationError,
    ParameterError,
    UnknownPluginError,
)
from sb3_extra_buffers.recording import FramelessRecordBuffer, RecordBuffer, force_alloc_mem

FRAME = np.zeros((20, 24, 3), np.uint8)
GOOD = {"frame": FRAME, "reward": 1.0, "action": 2, "features": [1, 2]}

BAD = {
    "a frame of another shape": ({"frame": FRAME[:19]}, r"of shape \(19, 24, 3\), expected shape \(20, 24, 3\)"),
    "height and width swapped": ({"frame": FRAME.transpose(1, 0, 2)}, r"res is \(H, W\)"),
    "a frame with an axis more": ({"frame": FRAME[None]}, r"of shape \(1, 20, 24, 3\).*add one frame"),
    "a frame without channels": ({"frame": FRAME[:, :, 0]}, r"of shape \(20, 24\)"),
    "a frame out of range": ({"frame": FRAME.astype(int) + 256}, r"the value 256 .*dtypes\[0\]"),
    "a frame with fractions": ({"frame": FRAME + 0.5}, "the value 0.5"),
    "no frame": ({"frame": None}, "frame is an array of object, expected numbers"),
    "a frame of text": ({"frame": np.full((20, 24, 3), "x")}, "frame is an array of <U1"),
    "a frame of rows of other lengths": ({"frame": [[1], [1, 2]]}, "frame is a list of no shape"),
    "several rewards": ({"reward": [1.0, 2.0]}, r"reward is of shape \(2,\), expected one number"),
    "no reward": ({"reward": None}, "reward is an array of object"),
    "a reward too large": ({"reward": 1e300}, "float32"),
    "an action of another shape": (
        {"action": [1, 2]},
        r"action is of shape \(2,\), expected shape \(\).*action_shape=",
    ),
    "an action with a fraction": ({"action": 0.5}, "the value 0.5 .*action_dtype="),
    "an action too large": ({"action": 2**63}, "expected int64"),
    "an action of text": ({"action": "left"}, "action is an array of <U4"),
    "no features": ({"features": None}, "features is nothing, expected 2 values"),
    "too few features": ({"features": [1]}, "features is 1 values, expected 2 values"),
    "too many features": ({"features": [1, 2, 3]}, "features is 3 values, expected 2 values"),
    "a feature out of range": ({"features": [1, 300]}, "features.*300"),
}


@pytest.fixture(params=["auto", "none"])
def buffer(request):
    buffer = RecordBuffer((20, 24), 3, 4, ["uint8", "float32", "uint8", "uint8"], compression_method=request.param)
    for number in range(6):
        buffer.add(FRAME + number, number, number, [number, 1])
    return buffer


@pytest.mark.parametrize("case", BAD)
def test_an_invalid_step_is_refused_and_changes_nothing(buffer, case):
    wrong, message = BAD[case]
    with pytest.raises(ObservationError, match=message) as caught:
        buffer.add(**{**GOOD, **wrong})
    assert str(caught.value).startswith("RecordBuffer: ")
    clip = buffer[:]
    assert (len(buffer), buffer.steps) == (4, 6)
    assert clip.frames[:, 0, 0, 0].tolist() == clip.actions.tolist() == clip.rewards.tolist() == [2, 3, 4, 5]
    buffer.add(**GOOD)
    assert buffer[-1].action == 2


def test_a_refused_first_action_does_not_set_the_dtype():
    buffer = RecordBuffer((20, 24), 3, 4)
    with pytest.raises(ObservationError):
        buffer.add(FRAME[1:], 0.0, [0.5, 1.5])
    buffer.add(FRAME, 0.0, 7)
    assert buffer[:].actions.tolist() == [7]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"res": 84}, "height and width"),
        ({"res": (84, 84, 3)}, "height and width"),
        ({"res": (0, 84)}, "at least 1"),
        ({"ch_num": 0}, "ch_num=0"),
        ({"ch_num": True}, "ch_num=True"),
        ({"size": 0}, "size=0"),
        ({"size": 2.5}, "size=2.5"),
        ({"dtypes": ["uint8"]}, "dtype of the rewards"),
        ({"dtypes": "uint8"}, "it must be a list"),
        ({"dtypes": ["uint8", "float32", "U5"]}, "'U5'"),
        ({"dtypes": ["uint8", "np.float33"]}, "it must name a dtype"),
        ({"dtypes": [object, "float32"]}, "plain bool, integer or float"),
        ({"channels": "middle"}, "auto, first, last"),
        ({"res": (4, 4), "ch_num": 4}, "does not show which axis holds the channels.*Use 'first' or 'last'"),
        ({"layout": "rows"}, "layout='rows'"),
        ({"prefer": "size"}, "prefer='size'"),
        ({"threads": 0}, "threads=0"),
        ({"compression_method": None}, "compression_method=None"),
        ({"compression_method": "gzip99"}, "level=99"),
        ({"action_dtype": "np.int33"}, "action_dtype"),
        ({"action_shape": (2, -1)}, "action_shape"),
        ({"action_shape": 2.5}, "action_shape"),
    ],
    ids=str,
)
def test_invalid_arguments_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        RecordBuffer(**{"res": (20, 24), "size": 10, **arguments})


def test_a_missing_codec_is_refused_when_the_buffer_is_created():
    with pytest.raises(UnknownPluginError, match="zstdd"):
        RecordBuffer((20, 24), 3, 10, compression_method="zstdd")


def test_an_index_out_of_range_raises_an_error(buffer):
    for wrong in (4, -5):
        with pytest.raises(IndexError, match="among the 4 kept"):
            _ = buffer[wrong]
    for wrong in ((0, 5), (-1, 2), (3, 2)):
        with pytest.raises(IndexError):
            buffer.read(*wrong)
    with pytest.raises(IndexError):
        buffer.gather([0, 4])
    with pytest.raises(ObservationError, match="one dimension"):
        buffer.gather([[0]])
    with pytest.raises(TypeError, match="an integer or a slice"):
        _ = buffer["0"]
    assert len(buffer[9:]) == 0
    with pytest.raises(IndexError, match="no episode 1"):
        buffer.episode(1)
    for wrong in (0, True, 1.5):
        with pytest.raises(ParameterError, match="size="):
            buffer.batches(wrong)


@pytest.mark.parametrize("make", [RecordBuffer, FramelessRecordBuffer])
def test_an_empty_recording_cannot_be_saved_or_read(make, tmp_path):
    buffer = make((20, 24), 3, 10)
    for act in (lambda: buffer.save(tmp_path / "x"), lambda: buffer.episode(0)):
        with pytest.raises(BufferStateError, match="nothing was recorded"):
            act()
    assert list(tmp_path.iterdir()) == []
    assert len(buffer[:]) == 0
    assert buffer.statistics().episodes == 0


def test_memory_cannot_be_allocated_after_recording_began(buffer):
    before = buffer[:].frames
    with pytest.raises(BufferStateError, match="4 steps would be overwritten"):
        force_alloc_mem(buffer)
    assert (buffer[:].frames == before).all()


def test_errors_derive_from_the_error_of_the_project():
    assert issubclass(ObservationError, ExtraBuffersError)
    assert issubclass(BufferStateError, ExtraBuffersError)

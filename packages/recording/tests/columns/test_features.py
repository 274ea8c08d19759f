"""Features of one dtype make a table, those of several a structured array."""

import numpy as np

from sb3_extra_buffers.recording import FramelessRecordBuffer


def test_features_of_one_dtype_are_a_table():
    buffer = FramelessRecordBuffer(size=3, dtypes=["uint8", "float32", "int16", np.int16])
    buffer.add(None, 0, 0, (1, -2))
    buffer.add(None, 0, 0, np.array([3, 4]))
    assert buffer.features.shape == (3, 2)
    assert buffer[:].features.tolist() == [[1, -2], [3, 4]]
    assert buffer[0].features.tolist() == [1, -2]


def test_features_of_several_dtypes_are_structured():
    buffer = FramelessRecordBuffer(size=3, dtypes=["uint8", "float32", bool, "np.float64", "int8"])
    for number in range(5):
        buffer.add(None, 0, 0, [number % 2, number / 3, -number])
    assert buffer.features.dtype.names == ("0", "1", "2")
    assert buffer[:].features.tolist() == [(False, 2 / 3, -2), (True, 1.0, -3), (False, 4 / 3, -4)]
    buffer.add(None, 0, 0, buffer[0].features)
    assert buffer[-1].features.tolist() == (False, 2 / 3, -2)


def test_one_feature_needs_no_list():
    buffer = FramelessRecordBuffer(size=3, dtypes=["uint8", "float32", "uint8"])
    buffer.add(None, 0, 0, 7)
    buffer.add(None, 0, 0, [8])
    assert buffer[:].features.tolist() == [[7], [8]]


def test_floats_are_rounded_to_the_dtype_of_the_feature():
    buffer = FramelessRecordBuffer(size=3, dtypes=["uint8", "float32", "float32"])
    buffer.add(None, 0, 0, [0.1])
    assert buffer[0].features.tolist() == [float(np.float32(0.1))]

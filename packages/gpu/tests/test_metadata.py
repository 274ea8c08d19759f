"""Where a payload lies, and how long its observation is."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.gpu_buffers.metadata import SlotMetadata, arr_config_length

SLOT = SlotMetadata(byte_start=32, pos_runs=0, pos_elem=8, run_length=4, payload_bytes=12)


def test_fields_stand_in_the_published_order():
    assert SlotMetadata(32, 0, 8, 4, 12) == SLOT
    assert dataclasses.astuple(SLOT) == (32, 0, 8, 4, 12)


def test_a_slot_does_not_change_and_can_be_a_key():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SLOT.byte_start = 0
    assert {SLOT: 1}[SlotMetadata(32, 0, 8, 4, 12)] == 1


def test_copies_of_a_slot_are_equal():
    assert pickle.loads(pickle.dumps(SLOT)) == copy.deepcopy(SLOT) == SLOT


@pytest.mark.parametrize(
    ("configs", "length"),
    [
        ({"size": 28224, "dtype": "uint8"}, 28224),
        ({"size": np.int64(7)}, 7),
        ({"size": 0}, 0),
        ({"shape": (84, 84, 4)}, 28224),
        ({"shape": [3, np.int32(5)]}, 15),
        ({"shape": 12}, 12),
        ({"shape": ()}, 1),
        ({"shape": (0, 4)}, 0),
        ({"size": 6, "shape": (2, 3)}, 6),
        ({"size": None, "shape": (2, 3)}, 6),
    ],
)
def test_the_length_is_the_size_or_the_product_of_the_axes(configs, length):
    found = arr_config_length(configs)
    assert found == length
    assert type(found) is int


@pytest.mark.parametrize("configs", [{}, {"dtype": "uint8"}, {"size": None}])
def test_without_either_the_error_says_what_is_missing(configs):
    with pytest.raises(ParameterError, match="under the key 'size' or 'shape'"):
        arr_config_length(configs)


@pytest.mark.parametrize(
    ("configs", "key"),
    [
        ({"size": -1}, "size"),
        ({"size": 2.5}, "size"),
        ({"size": True}, "size"),
        ({"size": (2, 3)}, "size"),
        ({"shape": (2, -3)}, "shape"),
        ({"shape": "84"}, "shape"),
        ({"shape": (2, None)}, "shape"),
    ],
)
def test_what_is_no_length_is_refused(configs, key):
    with pytest.raises(ParameterError, match=rf"arr_configs\['{key}'\]"):
        arr_config_length(configs)

"""Arrays are brought into the order of C by whoever can: the kernels, or numpy."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers import frames
from sb3_extra_buffers.frames import Contiguity
from sb3_extra_buffers.frames.numpy_kernels import NumpyKernels


class Marking(NumpyKernels):
    def contiguous(self, array, /):
        return np.zeros(array.shape, array.dtype)


@pytest.fixture
def turned():
    return np.arange(1, 2 * 3 * 4 * 5 + 1, dtype=np.uint8).reshape(2, 4, 5, 3).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("kernels", [None, NumpyKernels(), frames.create()], ids=["none", "numpy", "installed"])
def test_values_stay_and_their_order_in_memory_changes(kernels, turned):
    found = Contiguity(kernels)(turned)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, turned)


def test_kernels_are_asked_if_they_have_a_way(turned):
    assert not Contiguity(Marking())(turned).any()


def test_what_is_in_order_stays_where_it_is(turned):
    array = np.ascontiguousarray(turned)
    assert Contiguity()(array) is array


def test_a_pickle_takes_whatever_kernels_are_installed_where_it_is_loaded(turned):
    found = pickle.loads(pickle.dumps(Contiguity(Marking())))
    assert type(found.kernels) is type(frames.create())
    np.testing.assert_array_equal(found(turned), turned)

"""The choice of kernels: the fastest that are installed and work, or those that are named; and contiguous arrays."""

import pickle

import numpy as np
import pytest

from sb3_extra_buffers import frames
from sb3_extra_buffers.errors import PluginLoadError, UnknownPluginError
from sb3_extra_buffers.frames import CachingKernels, ContiguousKernels, contiguous_by
from sb3_extra_buffers.frames.numpy_kernels import NumpyKernels

WORKING = """
    from sb3_extra_buffers.frames import KernelsPlugin, hookimpl
    from sb3_extra_buffers.frames.numpy_kernels import NumpyKernels

    class Mine(NumpyKernels):
        name = "mine"

    @hookimpl
    def sb3_extra_buffers_frame_kernels():
        return KernelsPlugin(protocol=1, factory=Mine, summary="A stranger's")
"""


def test_installed_kernels_are_used_before_numpy(install, monkeypatch):
    install("mine-dist", "mine", "fake_mine", WORKING, group="frame_kernels")
    offers = {name: offer for name, offer in frames.registry.offers().items() if name in ("mine", "numpy")}
    monkeypatch.setattr(frames.registry, "_offers", offers)
    assert frames.create().name == "mine"
    assert frames.create("numpy").name == "numpy"


def test_broken_kernels_are_logged_and_replaced_unless_they_were_named(install, monkeypatch, caplog):
    install("bad-dist", "bad", "fake_bad2", "raise OSError('no such library')", group="frame_kernels")
    offers = {name: offer for name, offer in frames.registry.offers().items() if name in ("bad", "numpy")}
    monkeypatch.setattr(frames.registry, "_offers", offers)
    assert frames.create().name == "numpy"
    assert "'bad' are installed but do not work; slower ones are used" in caplog.text
    assert "no such library" in caplog.text
    with pytest.raises(PluginLoadError, match="no such library"):
        frames.create("bad")


def test_an_unknown_name_is_refused():
    with pytest.raises(UnknownPluginError, match="'numppy'"):
        frames.create("numppy")


def test_kernels_pickle_as_whatever_is_installed():
    assert pickle.loads(pickle.dumps(frames.create("numpy"))).name == frames.create().name


def test_capabilities_are_recognised_by_their_members():
    assert isinstance(NumpyKernels(), CachingKernels)
    assert not isinstance(NumpyKernels(), ContiguousKernels)
    assert isinstance(Marking(), ContiguousKernels)


class Marking(NumpyKernels):
    def contiguous(self, array, /):
        return np.zeros(array.shape, array.dtype)


@pytest.fixture
def turned():
    return np.arange(1, 2 * 3 * 4 * 5 + 1, dtype=np.uint8).reshape(2, 4, 5, 3).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("kernels", [None, NumpyKernels(), frames.create()], ids=["none", "numpy", "installed"])
def test_values_stay_and_memory_becomes_contiguous(kernels, turned):
    found = contiguous_by(kernels)(turned)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, turned)


def test_kernels_with_the_capability_are_used(turned):
    assert not contiguous_by(Marking())(turned).any()


def test_a_contiguous_array_is_not_copied(turned):
    array = np.ascontiguousarray(turned)
    assert contiguous_by(None)(array) is array

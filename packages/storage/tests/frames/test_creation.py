"""Which kernels are used: the fastest that are installed and work, or those that are named."""

import pickle

import pytest

from sb3_extra_buffers import frames
from sb3_extra_buffers.errors import PluginLoadError, UnknownPluginError

WORKING = """
    from sb3_extra_buffers.frames import KernelsPlugin, hookimpl
    from sb3_extra_buffers.frames.numpy_kernels import NumpyKernels

    class Mine(NumpyKernels):
        name = "mine"

    @hookimpl
    def sb3_extra_buffers_frame_kernels():
        return KernelsPlugin(protocol=1, factory=Mine, summary="A stranger's")
"""


def test_what_is_installed_is_used_before_numpy(install, monkeypatch):
    install("mine-dist", "mine", "fake_mine", WORKING, group="frame_kernels")
    offers = {name: offer for name, offer in frames.registry.offers().items() if name in ("mine", "numpy")}
    monkeypatch.setattr(frames.registry, "_offers", offers)
    assert frames.create().name == "mine"
    assert frames.create("numpy").name == "numpy"


def test_broken_kernels_are_told_and_replaced_unless_they_were_named(install, monkeypatch, caplog):
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

"""Kernels of a sum tree come from any distribution that offers them, and numpy is used if they fail."""

import logging

import pytest

from sb3_extra_buffers import sum_tree
from sb3_extra_buffers.errors import PluginError
from sb3_extra_buffers.sum_tree import NumpyTreeKernels, SumTree

OFFER = """
    from sb3_extra_buffers.sum_tree import NumpyTreeKernels, TreeKernelsPlugin, hookimpl

    class Kernels(NumpyTreeKernels):
        pass

    @hookimpl
    def sb3_extra_buffers_sum_tree_kernels():
        return TreeKernelsPlugin(protocol={protocol}, factory=Kernels, summary="for a test")
"""


def test_kernels_of_another_distribution_are_found_by_their_entry_point(install):
    # Names are tried in alphabetical order.
    install("fake-abacus", "abacus", "fake_abacus", OFFER.format(protocol=1), group="sum_tree_kernels")
    assert "abacus" in sum_tree.registry.names()
    kernels = sum_tree.create("abacus")
    assert type(kernels).__module__ == "fake_abacus"
    assert type(sum_tree.create()) is type(kernels)
    tree = SumTree(5)
    tree.update([1, 3], [2.0, 1.0])
    assert tree.find([0.0, 1.5, 2.5]).tolist() == [1, 1, 3]


def test_kernels_that_do_not_work_are_replaced_and_named_in_a_warning(install, caplog):
    install("fake-abacus", "abacus", "fake_abacus", OFFER.format(protocol=2), group="sum_tree_kernels")
    with caplog.at_level(logging.WARNING):
        kernels = sum_tree.create()
    assert type(kernels).__module__ != "fake_abacus"
    assert "'abacus' are installed but do not work" in caplog.text
    with pytest.raises(PluginError, match="protocol 2"):
        sum_tree.create("abacus")


def test_without_a_plugin_numpy_is_used(monkeypatch):
    monkeypatch.setattr(sum_tree.registry, "_offers", {})
    assert type(sum_tree.create()) is NumpyTreeKernels

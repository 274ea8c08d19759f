"""Heaps are made by name, and a request that makes no sense is refused before anything is allocated."""

import pytest

from sb3_extra_buffers.errors import ParameterError, PluginProtocolError, UnknownPluginError
from sb3_extra_buffers.heaps import Heap, create, names


def test_the_built_in_heaps_are_listed_and_made():
    assert {"memory", "ring"} <= set(names())
    for name, parameters in (("memory", {}), ("ring", {"capacity": 100})):
        assert isinstance(create(name, 5, **parameters), Heap)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("ring", {}, "heap 'ring': capacity=None is not allowed; it must be given"),
        ("memory", {"capacity": 5}, "heap 'memory': capacity=5 is not allowed; it takes no parameters"),
        ("ring", {"capacity": 5, "folder": "x"}, "folder='x' is not allowed; known parameters: capacity"),
        ("ring", {"capacity": 0}, "capacity=0"),
        ("ring", {"capacity": -5}, "capacity=-5"),
    ],
)
def test_parameters_that_are_missing_unknown_or_out_of_range_are_refused(name, parameters, message):
    with pytest.raises(ParameterError, match=message):
        create(name, 5, **parameters)


def test_an_unknown_heap_gets_the_nearest_name():
    with pytest.raises(UnknownPluginError, match=r"There is no heap named 'rign'.*Did you mean 'ring'"):
        create("rign", 5)


def test_a_factory_that_returns_no_heap_is_refused(install):
    source = """
        from sb3_extra_buffers.heaps import HeapPlugin, hookimpl

        @hookimpl
        def sb3_extra_buffers_heap():
            return HeapPlugin(protocol=1, factory=lambda cells: object(), summary="No heap")
    """
    install("odd-dist", "odd", "fake_odd_heap", source, group="heaps")
    with pytest.raises(
        PluginProtocolError, match=r"odd-dist 1.0 offers a object, expected an object that fulfils the Heap"
    ):
        create("odd", 5)

"""Plugins of a stranger beside the core alone: found by their entry points, used by their names."""

from importlib.metadata import distributions

import numpy as np
import pytest

from sb3_extra_buffers import codecs, heaps
from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.errors import ParameterError


def test_only_the_core_and_the_stranger_are_installed():
    ours = {distribution.name for distribution in distributions() if distribution.name.startswith("sb3-extra-buffers")}
    assert "sb3-extra-buffers-codec-bz2-example" in ours
    assert [name for name in ours if not name.endswith("-example")] == ["sb3-extra-buffers-core"]


def test_it_is_listed_bound_and_reads_the_shorthand_of_a_name_that_ends_in_a_digit():
    assert codecs.names() == ("bz2", "gzip", "none", "rle")
    cell = CellSpec(np.float32, 500)
    assert bind("bz2", cell).spec.params["level"] == 9
    codec = bind("bz2/1", cell)
    assert codec.spec.params["level"] == 1
    data, out = np.repeat(np.arange(50, dtype=np.float32), 10), np.zeros(500, np.float32)
    payload = codec.encode(data)
    codec.decode_into(payload, out)
    assert (out == data).all()
    assert len(payload) < data.nbytes


def test_its_levels_are_checked_by_the_core():
    with pytest.raises(ParameterError, match=r"codec 'bz2': level=10 is not allowed; levels: 1 to 9"):
        bind("bz2/10", CellSpec(np.uint8, 10))


def test_a_strangers_heap_is_listed_and_evicts():
    assert heaps.names() == ("fifo", "memory", "ring")
    heap = heaps.create("fifo", 10, capacity=100)
    for cell in range(5):
        heap.reserve(np.array([cell]), 40)[:] = cell
        heap.commit(np.array([40]))
    starts, _ = heap.locate(np.arange(10))
    assert np.flatnonzero(starts >= 0).tolist() == [3, 4]
    assert heap.evicted == heaps.Evictions(3, 3, 120)

"""Pickles name public modules, so that private ones can be renamed."""

import pickle
import pickletools

import numpy as np
import pytest

from sb3_extra_buffers.codecs import CellSpec, bind
from sb3_extra_buffers.heaps import create
from sb3_extra_buffers.testing.heap_subject import held, put

PUBLIC = {"sb3_extra_buffers.codecs", "sb3_extra_buffers.heaps"}


def modules(data):
    """The modules of ours that a pickle names."""
    texts = [argument for code, argument, _ in pickletools.genops(data) if isinstance(argument, str)]
    return {text.partition(" ")[0] for text in texts if text.startswith("sb3_extra_buffers")}


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(("name", "parameters"), [("memory", {}), ("ring", {"capacity": 1000})])
def test_pickled_heaps_name_their_class_and_public_modules(name, parameters, protocol):
    heap = create(name, 5, **parameters)
    put(heap, [1, 2], [b"one", b"two"])
    data = pickle.dumps(heap, protocol)
    assert modules(data) <= PUBLIC | {type(heap).__module__}  # the module that the entry point names
    assert held(pickle.loads(data)) == {1: b"one", 2: b"two"}


def test_pickled_codecs_name_public_modules_only():
    codec = bind("gzip/3", CellSpec(np.float32, 10))
    data = pickle.dumps(codec)
    assert modules(data) <= PUBLIC
    assert pickle.loads(data).spec == codec.spec

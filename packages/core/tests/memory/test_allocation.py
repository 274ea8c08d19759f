"""Memory that is not written to is not taken."""

import os
import subprocess
import sys

import numpy as np
import pytest

from sb3_extra_buffers.memory import untouched


@pytest.mark.parametrize("shape", [5, (3, 4), 100_000, (10, 0), (70, 1000)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_it_is_what_numpy_returns(shape, dtype):
    found, expected = untouched(shape, dtype), np.zeros(shape, dtype)
    np.testing.assert_array_equal(found, expected)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    found[...] = 7
    assert (found == 7).all()


def test_more_than_there_is_is_refused():
    with pytest.raises(MemoryError, match="refused"):
        untouched(1 << 60)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_only_pages_that_are_written_to_take_memory():
    script = """
import numpy as np
from sb3_extra_buffers.memory import untouched
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024
np.ones(1 << 25).sum()  # malloc has memory to use again
before = resident()
array = untouched(1 << 26)
array[: 1 << 20] = 1
print(array[1 << 20 :].any(), resident() - before)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    any_other, grown = found.stdout.split()
    assert any_other == "False"
    assert 1 << 20 <= int(grown) < 3 << 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_writes_to_its_own():
    array = untouched(100_000)
    child = os.fork()
    if not child:
        array[:] = 1
        os._exit(0)
    os.waitpid(child, 0)
    assert not array.any()

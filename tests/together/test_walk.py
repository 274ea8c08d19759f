"""The paths of an add, a sample and a minibatch are short, and the documentation shows them as they are."""

import sys
from importlib.util import find_spec

import pytest

from scripts.walk import PAGE, as_text, replaced, walks

#: Files of this repository that each path may cross, with compiled frame kernels.
MOST_FILES = 9


@pytest.fixture(scope="module")
def found():
    return walks()


def test_paths_lead_from_the_buffer_to_the_frame_kernels(found):
    assert [*found] == ["add", "sample", "minibatch"]
    for walk in found.values():
        files = " ".join(walk)
        assert "compressed/base.py" in files
        assert "stores/frames.py" in files
        assert "kernels.py" in files


def test_the_traced_add_completes_no_chunk(found):
    assert not any("ChunkStore" in name for functions in found["add"].values() for name in functions)


@pytest.mark.skipif(find_spec("numba") is None, reason="without numba, the kernels in numpy cross more files")
@pytest.mark.parametrize("name", ["add", "sample", "minibatch"])
def test_a_path_crosses_few_files(found, name):
    assert len(found[name]) <= MOST_FILES, as_text(name, found[name])


@pytest.mark.skipif(find_spec("numba") is None, reason="the page shows the paths with numba")
@pytest.mark.skipif(sys.version_info < (3, 11), reason="before Python 3.11, code does not know the class of a method")
def test_the_page_on_architecture_shows_the_paths(found):
    page = PAGE.read_text(encoding="utf-8")
    for name, walk in found.items():
        assert f"```text\n{as_text(name, walk)}\n```" in page, "Renew it: python -m scripts.walk --write"
    assert replaced(page, found) == page

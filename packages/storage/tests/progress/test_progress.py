"""Bars: drawn by what is installed, on a terminal, and nowhere else."""

import io
import sys
from importlib.util import find_spec

import pytest

from sb3_extra_buffers import progress
from sb3_extra_buffers.progress import progress_bar


class Terminal(io.StringIO):
    """A stderr that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


def drawn(wanted=True):
    with progress_bar("Episodes", 8, wanted) as advance:
        advance(3)
        advance(5)
    return sys.stderr.getvalue()


@pytest.fixture(params=["rich", "tqdm", "neither"])
def library(request, monkeypatch):
    """One library is found, or none."""
    monkeypatch.setattr(progress, "find_spec", lambda name: find_spec(name) if name == request.param else None)
    monkeypatch.setenv("TERM", "xterm")
    return request.param


def test_on_a_terminal_there_is_a_bar(library, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    text = drawn()
    if find_spec(library) is None:  # there is no «neither», and not every session has the others
        assert text == ""
    else:
        assert "Episodes" in text
        assert "8" in text


def test_in_a_pipe_nothing_is_written(library, monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert drawn() == ""


def test_who_does_not_want_it_sees_nothing(library, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert drawn(wanted=False) == ""


def test_errors_pass_through(library, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ZeroDivisionError), progress_bar("Episodes", 8) as advance:
        advance(1 // 0)

"""Commands are run as they are typed; what needs the extra ``cli`` is left out without it."""

import importlib.util

import pytest

collect_ignore_glob = [] if importlib.util.find_spec("typer") else ["test_*.py"]


@pytest.fixture
def run(capsys):
    """Type a command; what it printed, what it complained of, and its exit code."""
    from sb3_extra_buffers.cli import main

    def run(*words):
        with pytest.raises(SystemExit) as exit_code:
            main([str(word) for word in words])
        printed = capsys.readouterr()
        return printed.out, printed.err, exit_code.value.code

    return run

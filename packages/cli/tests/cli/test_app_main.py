"""What goes wrong is one sentence and a next step; a traceback comes only on request."""

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from sb3_extra_buffers.cli import app as app_module


def test_help_shows_every_command_and_its_examples(run):
    out, _, code = run("--help")
    assert code == 0
    for command in ("codecs", "heaps", "doctor", "advise", "bench", "inspect", "verify", "new-codec", "new-heap"):
        assert command in out
        shown, _, code = run(command, "--help")
        assert code == 0
        assert f"sb3-buffers {command}" in shown
        _, _, examples = shown.partition("Examples:")
        assert "sb3-buffers " in examples
        assert all(line.count("sb3-buffers ") <= 1 for line in examples.splitlines())  # one on each line


def test_without_a_command_there_is_help_and_an_exit_code(run):
    out, _, code = run()
    assert "advise" in out
    assert code == 2


def test_the_version_is_that_of_the_distribution(run):
    assert run("--version") == (f"sb3-extra-buffers {version('sb3-extra-buffers')}\n", "", 0)


def test_a_shell_gets_its_completion():
    environment = {
        **os.environ,
        "_SB3_BUFFERS_COMPLETE": "complete_bash",
        "COMP_WORDS": "sb3-buffers ",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-m", "sb3_extra_buffers.cli"], capture_output=True, text=True, env=environment, timeout=1800
    )
    assert "advise" in done.stdout.split()


@pytest.mark.parametrize(
    "words", [("nothing",), ("advise",), ("advise", "CartPole-v1", "--size", "none"), ("codecs", "-x")]
)
def test_what_cannot_be_understood_is_exit_code_2(run, words):
    _, err, code = run(*words)
    assert code == 2
    assert "Usage: sb3-buffers" in err


def test_an_error_is_one_line_and_exit_code_2(run):
    out, err, code = run("inspect", "absent")
    assert (out, code) == ("", 2)
    assert err == "error: absent does not exist. Check the path.\n"


def test_what_nobody_foresaw_says_how_to_see_more_and_is_exit_code_1(run, monkeypatch):
    def fail():
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(app_module, "app", lambda *_, **__: fail())
    _, err, code = run("codecs")
    assert err == "error: ZeroDivisionError: division by zero. Add --debug to see where it comes from.\n"
    assert code == 1
    _, err, code = run("codecs", "--debug")
    assert err.endswith("\nerror: ZeroDivisionError: division by zero.\n")
    assert code == 1


@pytest.mark.parametrize("words", [("--debug", "inspect", "absent"), ("inspect", "absent", "--debug")])
def test_debug_shows_the_traceback_wherever_it_is_said_and_the_exit_code_stays(run, words):
    out, err, code = run(*words)
    assert (out, code) == ("", 2)
    assert err.startswith("Traceback (most recent call last):")
    assert "FileMissingError" in err
    assert err.endswith("\nerror: absent does not exist. Check the path.\n")


def test_in_a_pipe_there_are_no_colours_no_bar_and_no_lost_columns():
    words = ["advise", "CartPole-v1", "--quick", "--size", "1000"]
    done = subprocess.run(
        [sys.executable, "-m", "sb3_extra_buffers.cli", *words], capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr == ""
    assert "sample, ms" in done.stdout


@pytest.mark.parametrize("words", ["codecs", "codecs --json", "doctor", "advise --help"])
def test_who_stops_reading_gets_no_complaint(words):
    command = f"{sys.executable} -m sb3_extra_buffers.cli {words} | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=1800)
    assert (done.returncode, done.stderr) == (0, "")

"""Advice by command: the same figures, in a table or as JSON."""

import json
import sys
import textwrap

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import codecs
from sb3_extra_buffers.cli import advice as advice_module

FAILS = """
    from sb3_extra_buffers.codecs import ByteCodec, CodecPlugin, hookimpl

    class Fails(ByteCodec):
        detects_corruption = False
        library_errors = ()

        def compress(self, cell):
            return bytes(cell[:40])

        def decompress_into(self, payload, out):
            raise RuntimeError("this stream is not mine")

    @hookimpl
    def sb3_extra_buffers_codec():
        return CodecPlugin(protocol=1, factory=Fails, summary="fails on data")
"""
QUICK = ("--quick", "--size", "5000")


@pytest.fixture
def film(tmp_path):
    """A bar that moves over a screen, in a file."""
    frames = np.zeros((150, 40, 40), np.uint8)
    for number, frame in enumerate(frames):
        frame[number % 36 : number % 36 + 4] = 200
    np.savez(tmp_path / "film.npz", observations=frames)
    return tmp_path / "film.npz"


MADE = """
    import gymnasium
    import numpy as np
    from gymnasium import spaces
    from stable_baselines3.common.env_util import make_vec_env

    class Numbers(gymnasium.ObservationWrapper):
        def __init__(self, env):
            super().__init__(env)
            self.observation_space = spaces.Box(0, 50, (3,), np.float32)

        def observation(self, observation):
            return np.array(observation, np.float32)

    class Words(gymnasium.Env):
        observation_space, action_space = spaces.Text(5), spaces.Discrete(2)

    class Nested(gymnasium.Env):
        observation_space = spaces.Dict({"a": spaces.Dict({"b": spaces.Discrete(2)})})
        action_space = spaces.Discrete(2)

    def make_numbers():
        return Numbers(gymnasium.make("Blackjack-v1"))

    def make_two():
        from fake_made_more import NUMBER  # beside it, and imported late

        return make_vec_env(make_numbers, NUMBER)

    def make_seven():
        return 7
"""


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A module of the user, in the folder where the command is run."""
    (tmp_path / "fake_made.py").write_text(textwrap.dedent(MADE))
    (tmp_path / "fake_made_more.py").write_text("NUMBER = 2")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "fake_made", raising=False)


@pytest.mark.parametrize(
    ("words", "label", "envs"),
    [
        (("Blackjack-v1", "--make", "fake_made:Numbers"), "Blackjack-v1 fake_made:Numbers", 1),
        (("--make", "fake_made:make_numbers", "--envs", "3"), "fake_made:make_numbers", 3),
        (("--make", "fake_made:make_two"), "fake_made:make_two", 2),
    ],
    ids=["wrapper", "factory", "vectorized"],
)
def test_an_environment_may_be_wrapped_or_made_by_a_function(run, made, words, label, envs):
    out, err, code = run("advise", *words, "--steps", "300", "--json", *QUICK)
    assert code == 0, err
    stream = json.loads(out)["stream"]
    assert (stream["label"], stream["n_envs"]) == (label, envs)
    assert stream["observation_space"] == "Box(0.0, 50.0, (3,), float32)"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--make", "fake_made:absent"), "it must be MODULE:FUNCTION, to be imported from here or from what is "),
        (("--make", "absent:make"), "(No module named 'absent')"),
        (("--make", "fake_made"), "make='fake_made' is not allowed; it must be MODULE:FUNCTION"),
        (("--make", "fake_made:make_seven"), "environment=7 is not allowed; it must be a gymnasium.Env or a VecEnv"),
        (("--make", "fake_made:Numbers"), "what is installed (missing a required argument: 'env'). A wrapper "),
        (
            ("--make", "fake_made:Numbers"),
            "follows its environment: sb3-buffers advise CartPole-v1 --make fake_made:Nu",
        ),
        (("Blackjack-v1", "--make", "fake_made:make_two"), "what is installed (too many positional arguments). A "),
        (("--make", "fake_made:make_two", "--envs", "3"), "envs=3 is not allowed; the function made 2 environments"),
        (("Absent-v0", "--make", "fake_made:Numbers"), "Gymnasium does not know it"),
        (("--make", "fake_made:Words"), "Words: observation_space=Text("),
        (("--make", "fake_made:Nested"), "Nested: observation_space=Dict('a': Dict('b': Discrete(2))) is not allowed"),
        (("Blackjack-v1",), "--make of sb3-buffers advise takes the wrapper."),
        (("--quick",), "there must be an environment, a file, or --make. Usage: sb3-buffers advise SOURCE"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_made_or_stored_is_one_sentence_and_exit_code_2(run, made, words, sentence):
    out, err, code = run("advise", *words, *QUICK)
    assert (out, code) == ("", 2)
    assert sentence in err
    assert err.count("\n") == 1


def test_the_help_says_that_a_policy_is_unpickled(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    out, _, _ = run("advise", "--help")
    assert "unpickles, which runs code that the file names: use only files that you trust" in out


def test_it_says_what_auto_has_become_and_by_which_rule(run, film):
    out, _, _ = run("advise", film, "--codec", "gzip/1", *QUICK)
    lines = out.splitlines()
    became = next(line for line in lines if line.startswith("auto: "))
    assert became.startswith(("auto: frames (", "auto: rle"))  # as codecs are installed
    rule, choice = lines[lines.index(became) + 1 :][:2]
    assert rule.startswith("Rule of auto: the least memory times sampling time")
    assert choice.startswith("Choice: prefer='balanced': ")
    assert "; 'speed': " in choice
    assert "; 'memory': " in choice


def test_a_file_gets_a_recommendation_to_paste(run, film):
    out, err, code = run("advise", film, "--codec", "gzip/1", *QUICK)
    assert code == 0, err
    assert "film.npz: Box(0, 255, (40, 40), uint8)" in out
    assert "149 transitions, 1 codecs and levels tried" in out
    assert "Recommended: " in out
    assert "    from sb3_extra_buffers.compressed import CompressedReplayBuffer\n" in out
    assert "    replay_buffer_class=CompressedReplayBuffer" in out


@pytest.mark.parametrize("prefer", ["speed", "memory"])
def test_what_does_not_fit_into_memory_gets_lines_for_a_file_that_work(run, film, tmp_path, monkeypatch, prefer):
    monkeypatch.setattr(advice_module, "_memory", lambda: 1)
    out, err, code = run("advise", film, "--codec", "gzip/1", "--prefer", prefer, *QUICK)
    assert code == 0, err
    assert "This machine has 1 B of memory: choose a smaller buffer, or keep it in a file." in out
    imported, arguments = (line.strip() for line in out.splitlines()[-3:-1])
    scope = {}
    exec(f"{imported}\nfound = dict({arguments})", scope)
    options = scope["found"]["replay_buffer_kwargs"]
    options["heap_kwargs"]["folder"] = str(tmp_path)  # instead of three dots
    space = spaces.Box(0, 255, (40, 40), np.uint8)
    buffer = scope["found"]["replay_buffer_class"](5000, space, spaces.Discrete(2), "cpu", **options)
    assert buffer.memory_report().capacity < 2 * 5000 * 40 * 40 / 2


def test_json_is_all_that_is_printed(run, film):
    out, err, code = run("advise", film, "--codec", "gzip/1", "--json", *QUICK)
    assert code == 0, err
    content = json.loads(out)
    assert content["compress"] is True
    assert content["planned_transitions"] == 5000


def test_memory_may_be_preferred(run, film):
    chosen = {}
    for prefer in ("speed", "memory"):
        content = json.loads(run("advise", film, "--codec", "gzip/1", "--prefer", prefer, "--json", *QUICK)[0])
        sizes = {one["name"]: one["nbytes"] for one in content["measured"]}
        chosen[prefer] = sizes[content["recommended"]]
        smallest = min(sizes.values())
    assert chosen["memory"] <= 1.05 * smallest


def test_small_vectors_are_better_left_alone(run):
    out, _, code = run("advise", "CartPole-v1", "--steps", "64", *QUICK)
    assert code == 0
    assert ", too small to be tried (under 256 bytes), 2 buffers measured." in out
    assert "Do not compress: observations are too small to be tried (under 256 bytes)." in out
    assert "Keep Stable-Baselines3's own ReplayBuffer." in out
    assert "replay_buffer_class" not in out


def test_without_a_codec_to_try_it_does_not_say_that_images_are_too_small(run, film):
    out, _, code = run("advise", film, "--codec", "none", *QUICK)
    assert code == 0
    assert "149 transitions, no codec tried, 4 buffers measured." in out


def test_codecs_that_went_into_no_buffer_are_named_with_the_reason(run, tmp_path):
    np.save(tmp_path / "noise.npy", np.random.default_rng(0).integers(0, 256, (150, 40, 40), dtype=np.uint8))
    out, _, code = run("advise", tmp_path / "noise.npy", "--codec", "gzip/1", "--codec", "rle", *QUICK)
    assert code == 0
    assert "In no buffer: gzip/1, rle: less than a fifth is saved." in out


@pytest.mark.parametrize("others", [(), ("--codec", "gzip/1"), ("--json",)], ids=str)
def test_a_codec_that_was_asked_for_and_fails_is_exit_code_2_beside_what_was_found(run, film, install, others):
    install("fails-dist", "fails", "fake_fails", FAILS)
    out, err, code = run("advise", film, "--codec", "fails", *others, *QUICK)
    assert code == 2
    assert err.startswith("error: advise: codec='fails' is not allowed; it fails on these observations (RuntimeError:")
    assert err.endswith("Leave it out, or report this to its author.\n")
    assert err.count("\n") == 1
    assert "SB3" in out
    assert "this stream is not mine" in out


def test_a_codec_that_was_asked_for_and_fails_on_small_vectors_was_tried(run, install):
    install("fails-dist", "fails", "fake_fails", FAILS.replace("cell[:40]", "cell[:4]"))  # of 16 bytes
    out, _, code = run("advise", "CartPole-v1", "--steps", "64", "--codec", "fails", *QUICK)
    assert code == 2
    assert "64 transitions, no codec worked, 2 buffers measured." in out
    assert "Do not compress: nothing makes the buffer smaller." in out
    assert "too small" not in out


def test_small_vectors_are_too_small_also_if_a_codec_cannot_be_loaded(run, install):
    install("broken-dist", "broken", "fake_broken", "raise RuntimeError('not today')")
    out, _, code = run("advise", "CartPole-v1", "--steps", "64", *QUICK)
    assert code == 0
    assert ", too small to be tried (under 256 bytes), 2 buffers measured." in out


def test_a_codec_that_fails_and_that_nobody_asked_for_is_only_told(run, film, install, monkeypatch):
    install("fails-dist", "fails", "fake_fails", FAILS)
    monkeypatch.setattr(codecs, "names", lambda: ("fails", "rle"))
    out, err, code = run("advise", film, *QUICK)
    assert (err, code) == ("", 0)
    assert "Failed: fails: RuntimeError: this stream is not mine" in out


def test_a_plot_is_drawn(run, film, tmp_path):
    out, _, code = run("advise", film, "--codec", "gzip/1", "--plot", tmp_path / "film.svg", *QUICK)
    assert code == 0
    assert f"Drawn to {tmp_path / 'film.svg'}." in out
    assert "cells gzip/1" in (tmp_path / "film.svg").read_text()


@pytest.mark.parametrize("form", [(), ("--json",)], ids=str)
def test_a_plot_that_cannot_be_written_takes_nothing_away(run, film, tmp_path, monkeypatch, form):
    from sb3_extra_buffers import advisor

    def full(_, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(advisor, "draw", full)
    out, err, code = run("advise", film, "--codec", "gzip/1", "--plot", tmp_path / "film.svg", *form, *QUICK)
    assert code == 2
    assert "No space left on device" in err
    assert "Drawn" not in out
    assert json.loads(out)["measured"] if form else "Recommended: " in out


def test_a_plot_that_could_not_be_written_is_refused_before_anything_is_measured(run, tmp_path, monkeypatch):
    (tmp_path / "folder.png").mkdir()
    out, err, code = run("advise", "CartPole-v1", "--plot", tmp_path / "folder.png", *QUICK)
    assert (out, code) == ("", 2)
    assert "it is a folder. Give the name of a file." in err
    # Who runs tests may be allowed to write anywhere.
    monkeypatch.setattr(advice_module.os, "access", lambda path, _: path != tmp_path)
    out, err, code = run("advise", "CartPole-v1", "--plot", tmp_path / "plot.png", *QUICK)
    assert (out, code) == ("", 2)
    assert f"advise --plot: cannot write {tmp_path / 'plot.png'}: permission denied. Give a file in" in err


@pytest.mark.parametrize(
    "option",
    [("--stack", "4"), ("--envs", "3"), ("--algorithm", "PPO"), ("--policy", "nothing.zip"), ("--make", "a:b")],
    ids=str,
)
def test_what_is_for_environments_is_refused_for_files(run, film, option):
    _, err, code = run("advise", film, *option, *QUICK)
    assert code == 2
    assert f"{option[0][2:]}=" in err
    assert option[1] in err
    assert "it is for environments; the observations of a file are used as they are. Leave it out." in err


def test_no_name_is_lost_on_a_narrow_terminal(run, film, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out, _, _ = run("advise", film, "--codec", "gzip/1", *QUICK)
    for name in ("SB3", "auto", "auto memory", "cells gzip/1"):
        assert any(line.strip(" *").startswith(f"{name} ") for line in out.splitlines()), name


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("Nope-v0",), "environment='Nope-v0' is not allowed; Gymnasium does not know it"),
        (("CartPol-v1",), "Did you mean 'CartPole-v1'?"),
        (("nowhere_at_all:Env-v0",), "nowhere_at_all is not installed. Run: pip install nowhere_at_all"),
        (("Blackjack-v1",), "buffers of Stable-Baselines3 hold Box, Discrete, MultiDiscrete, MultiBinary"),
        (("/",), "/: expected observations, found a folder."),
        ((__file__,), "is not a file of sb3-extra-buffers"),
        (("absent.npz",), "absent.npz does not exist. Check the path."),
        (("CartPole-v1", "--codec", "gzipp"), "There is no codec named 'gzipp'."),
        (("CartPole-v1", "--prefer", "fun"), "'fun' is not allowed; it must be one of: speed, balanced, memory"),
        (("CartPole-v1", "--plot", "plot.docx"), "its name must end in one of: ."),
        (("CartPole-v1", "--plot", "absent/plot.png"), "absent does not exist. Make the folder first."),
        (("CartPole-v1", "--policy", "absent.zip", "--algorithm", "ppo"), "absent.zip does not exist."),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_code_2(run, words, sentence):
    out, err, code = run("advise", *words, "--steps", "64", *QUICK)
    assert code == 2
    assert out == ""
    assert sentence in err
    assert err.count("\n") == 1
    assert err.startswith("error: ")

"""The command line beside what other distributions bring."""

import json
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from sb3_extra_buffers.advisor import read
from sb3_extra_buffers.cli.plugins import render_template, template_words
from sb3_extra_buffers.recording import RecordBuffer, RecordEnv
from sb3_extra_buffers.stores import auto

ROOT = Path(__file__).parents[2]


def run(*words):
    command = [sys.executable, "-m", "sb3_extra_buffers.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=1800)


@pytest.fixture
def recording(tmp_path):
    """A few colours that move, as a segmentation of a scene looks, saved."""
    buffer = RecordBuffer((48, 64), ch_num=1, size=200)
    for number in range(150):
        frame = np.zeros((48, 64, 1), np.uint8)
        frame[number % 40 : number % 40 + 8, 10:30] = 3
        frame[20:30, number % 50 : number % 50 + 10] = 7
        buffer.add(frame, 1.0, number % 3)
    buffer.save(tmp_path / "labels.safetensors")
    return tmp_path / "labels.safetensors"


def test_advice_on_a_recording_compresses_masks(recording):
    done = run("advise", recording, "--quick", "--json", "--codec", "rle", "--codec", "zstd/1")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["stream"]["label"] == "labels.safetensors"
    assert content["stream"]["transitions"] == 149
    assert content["compress"]
    best = next(one for one in content["measured"] if one["name"] == content["recommended"])
    assert best["times_smaller"] > 5


def test_a_recording_is_read_on_until_there_are_as_many_transitions_as_are_needed(tmp_path):
    buffer = RecordBuffer((8, 8), ch_num=1, size=400)
    for number in range(400):
        buffer.add(np.full((8, 8, 1), number % 256, np.uint8), 1.0, 0, done=number % 3 == 2)
    buffer.save(tmp_path / "short.recording")
    assert [len(read(tmp_path / "short.recording", steps).steps) for steps in (64, 100, 300)] == [64, 100, 266]


def test_the_sample_in_the_documents_has_the_columns_and_the_words_of_the_table(recording):
    printed = run("advise", recording, "--quick", "--codec", "rle").stdout.splitlines()
    sample = (ROOT / "docs" / "command-line.md").read_text().split("```text\n")[1].split("```")[0].splitlines()
    for beginning in ("stored as", "memory: ", "time: ", "*: "):
        real, shown = (
            next(line for line in lines if line.strip().startswith(beginning)) for lines in (printed, sample)
        )
        assert shown.split() == real.split()


def test_a_recording_tells_what_it_holds_and_is_whole(recording):
    assert json.loads(run("inspect", recording, "--json").stdout)["kind"] == "recording"
    told = run("inspect", recording).stdout
    assert "recording of RecordBuffer, 150 steps, " in told
    assert "  frames   48 x 64 x 1, uint8\n  codec    zstd/6" in told
    assert "every checksum fits" in run("verify", recording).stdout


def test_the_recording_in_the_documents_is_told_of_as_it_is_there(tmp_path, monkeypatch):
    pytest.importorskip("ale_py")
    env = RecordEnv(gymnasium.make("ale_py:ALE/Breakout-v5"), size=300)
    env.action_space.seed(0)
    env.reset(seed=0)
    while len(env.recording) < 300:
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    monkeypatch.chdir(tmp_path)
    # The documents show what our distributions do; the codec of the template is installed here, too.
    ours = [name for name in auto.names() if name != "bz2"]
    monkeypatch.setattr(auto, "names", lambda: ours)
    env.recording.save("breakout.recording")
    sample = (ROOT / "docs" / "command-line.md").read_text().partition("```text\nbreakout.recording: ")[2]
    title, *lines = sample.partition("```")[0].splitlines()
    real, *found = run("inspect", "breakout.recording").stdout.splitlines()
    assert lines == found
    # How many bytes there are depends on the library of the codec: nearly as many.
    (before, size), (said, shown) = (line.removesuffix(" bytes").rsplit(", ", 1) for line in (real, title))
    assert before == f"breakout.recording: {said}"
    assert int(shown.replace(",", "")) == pytest.approx(int(size.replace(",", "")), rel=0.1)


def test_pictures_can_be_drawn_again_from_figures_that_were_published(tmp_path):
    published = ROOT / "docs" / "benchmarks" / "choosing.json"
    words = ["-m", "benchmarks.choosing", "--redraw", str(published), "--pictures", str(tmp_path)]
    subprocess.run([sys.executable, *words], check=True, cwd=ROOT, timeout=1800)
    drawn = {path.stem: path.read_text() for path in tmp_path.glob("*.svg")}
    for kind, figures in json.loads(published.read_text())["kinds"].items():
        for number, one in enumerate(figures["measured"], 1):
            assert f"{number}  {one['name']}, " in drawn[f"pareto-{kind}"]


@pytest.mark.parametrize(("kind", "example"), [("codec", "plugin-template"), ("heap", "heap-template")])
def test_what_a_new_plugin_has_is_the_example_that_the_documents_explain(kind, example):
    folder = ROOT / "examples" / example
    if not folder.exists():
        pytest.skip(f"there is no examples/{example}")
    (module,) = (path for path in folder.glob(f"src/sb3_extra_buffers_{kind}_*/*.py") if path.name != "__init__.py")
    words = template_words(kind, module.stem.replace("_", "-"))
    hint, _, written = render_template("$kind/module.py.in", words).partition("\n")
    assert hint.startswith("# Replace ")
    assert written == module.read_text()
    assert render_template("init.py.in", words) == module.with_name("__init__.py").read_text()
    tests = folder / "tests" / "test_conformance.py"
    assert render_template("$kind/test_conformance.py.in", words) == tests.read_text()

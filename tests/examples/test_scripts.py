"""Examples run as files and as modules, and name a missing package with the command that installs it."""

from __future__ import annotations

import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from examples._lib.packages import install_command, missing_package, required_packages
from sb3_extra_buffers.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("example_*.py"))


def run_as_file(script: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    monkeypatch.setattr(sys, "argv", [str(script), *arguments])
    monkeypatch.setattr(sys, "path", [str(script.parent), *sys.path])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(script), run_name="__main__")
    return ended.value.code


def test_the_folder_has_nothing_but_scripts_and_their_helpers() -> None:
    found = {path.stem for path in (ROOT / "examples").glob("*.py")} - {path.stem for path in SCRIPTS}
    assert found == {"__init__"}
    published = {f"{verb}_gpu_{kind}" for verb in ("train", "watch") for kind in ("replay", "rollout")}
    published |= {"train_replay", "train_rollout", "eval_memory_saving", "eval_memory_loading"}
    assert published <= {path.stem.removeprefix("example_") for path in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_that_is_run_as_a_file_shows_its_own_command(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_as_file(script, monkeypatch, "--help")
    assert sys.path[0] == str(ROOT)
    if "gpu" in script.stem and find_spec("sb3_extra_buffers.gpu_buffers") is None:
        assert str(code).endswith(f"Run: {install_command('sb3-extra-buffers-gpu', '')}")
        return
    assert code == 0
    usage = capsys.readouterr().out
    assert usage.startswith(f"usage: python examples/{script.name} ")
    assert f"example: python examples/{script.name} " in " ".join(usage.split())


def test_a_script_runs_from_another_folder_and_as_a_module(tmp_path: Path) -> None:
    script = ROOT / "examples" / "example_train_replay.py"
    as_file = subprocess.run(
        [sys.executable, str(script), "--help"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    as_module = subprocess.run(
        [sys.executable, "-m", "examples.example_train_replay", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert as_file.stdout == as_module.stdout


@pytest.mark.parametrize(
    ("missing", "distribution", "extra"),
    [
        ("rich", "rich", ""),
        ("matplotlib.figure", "matplotlib", ""),
        ("PIL.Image", "pillow", ""),
        ("cv2", "sb3-extra-buffers", "atari"),
        ("stable_baselines3.common", "sb3-extra-buffers", ""),
        ("ale_py", "sb3-extra-buffers", "atari"),
        # An extra would ask an index for the distribution that it names.
        ("sb3_extra_buffers.gpu_buffers", "sb3-extra-buffers-gpu", ""),
        ("sb3_extra_buffers.gpu_buffers.devices", "sb3-extra-buffers-gpu", ""),
        ("sb3_extra_buffers.recording", "sb3-extra-buffers-recording", ""),
        ("sb3_extra_buffers.compressed", "sb3-extra-buffers", ""),
    ],
)
def test_a_missing_package_is_named_with_what_installs_it(missing: str, distribution: str, extra: str) -> None:
    with pytest.raises(SystemExit) as ended, required_packages():
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)
    command = install_command(distribution, extra)
    assert ended.value.code == (
        f"error: This example needs the module {missing!r}, which is not installed. Run: {command}"
    )


def test_without_the_core_the_command_installs_everything_from_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sb3_extra_buffers.errors.install", None)
    packages = ROOT / "packages"
    everything = f'pip install "{packages}"/*/'
    assert install_command("sb3-extra-buffers", "") == everything
    assert install_command("sb3-extra-buffers", "atari") == f'{everything} "{packages}/buffers[atari]"'
    assert install_command("sb3-extra-buffers-recording", "video") == f'{everything} "{packages}/recording[video]"'
    assert install_command("pillow", "") == "pip install pillow"


def test_the_errors_of_this_project_are_shown_as_they_are() -> None:
    error = MissingExtraError("Playing Doom", "vizdoom", "vizdoom")
    assert missing_package(error) == str(error)


@pytest.mark.parametrize(
    "error",
    [ImportError("undefined symbol", name="torch"), ModuleNotFoundError("No module", name="examples._lib.nothing")],
    ids=["broken library", "own module"],
)
def test_other_errors_of_imports_keep_their_traceback(error: ImportError) -> None:
    with pytest.raises(type(error)), required_packages():
        raise error


def test_a_script_without_a_package_exits_with_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    code = run_as_file(ROOT / "examples" / "example_train_rollout.py", monkeypatch, "--help")
    assert code == (
        "error: This example needs the module 'stable_baselines3', which is not installed. "
        f"Run: {install_command('sb3-extra-buffers', '')}"
    )

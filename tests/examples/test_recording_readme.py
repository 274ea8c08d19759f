"""The example of the package for recordings does what its readme says, with fewer frames."""

from __future__ import annotations

import re
from pathlib import Path

import av
import pytest

from sb3_extra_buffers.recording import load

README = Path(__file__).parents[2] / "packages" / "recording" / "README.md"
FRAMES = 150


def test_doom_is_recorded_saved_loaded_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (script,) = re.findall(r"^```py\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    assert script.count("10_000") == 1
    monkeypatch.chdir(tmp_path)
    exec(compile(script.replace("10_000", str(FRAMES)), str(README), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.startswith(f"{FRAMES} steps of {FRAMES} kept")
    saved = load("doom.rec", verify=True)
    assert (len(saved), saved.frame_shape) == (FRAMES, (240, 320, 1))
    assert len(set(saved[-1].frame.reshape(-1).tolist())) > 2  # walls, floors and objects
    with av.open("doom.mp4") as video:
        assert sum(1 for _ in video.decode(video=0)) == FRAMES
    assert Path("doom.png").stat().st_size > 1000

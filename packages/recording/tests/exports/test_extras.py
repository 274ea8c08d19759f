"""A library that is missing is named, with the line that installs it."""

import sys

import pytest

from sb3_extra_buffers.errors import MissingExtraError
from sb3_extra_buffers.recording import RecordBuffer
from sb3_extra_buffers.recording.exports.extras import require

EXPORTS = [
    ("to_video", "a.mp4", {}, "av", "video"),
    ("to_video", "a.gif", {}, "PIL", "video"),
    ("contact_sheet", "a.png", {}, "PIL", "video"),
    ("to_parquet", "a.parquet", {}, "pyarrow", "parquet"),
    ("to_dataset", "a", {}, "datasets", "datasets"),
    ("to_minari", "a-v0", {"terminal_frames": True}, "minari", "minari"),
]


@pytest.mark.parametrize(("method", "name", "options", "library", "extra"), EXPORTS)
def test_the_error_says_what_to_install(method, name, options, library, extra, tmp_path, play, record, monkeypatch):
    buffer = record(RecordBuffer((20, 24), 3, 5), play(5))
    for module in list(sys.modules):
        if module.partition(".")[0] == library:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingExtraError, match=method) as caught:
        getattr(buffer, method)(name, **options)
    assert f'pip install "sb3-extra-buffers-recording[{extra}]>=1"' in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_library_that_is_there_but_broken_says_so_itself(tmp_path, monkeypatch):
    (tmp_path / "av.py").write_text("import something_that_av_lacks")
    monkeypatch.delitem(sys.modules, "av", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_that_av_lacks") as caught:
        require("av", "to_video")
    assert not isinstance(caught.value, MissingExtraError)
    monkeypatch.delitem(sys.modules, "av", raising=False)

"""A missing library raises an error with the command that installs all that the feature needs."""

import importlib
import sys

import pytest

from sb3_extra_buffers import recording
from sb3_extra_buffers.errors import MissingExtraError
from sb3_extra_buffers.errors.install import install_command
from sb3_extra_buffers.recording import RecordBuffer
from sb3_extra_buffers.recording.exports.extras import require

PYTHON = "sb3_extra_buffers.recording.exports.extras._PYTHON"
EXPORTS = [
    ("to_video", "a.mp4", {}, "av", "video"),
    ("to_video", "a.gif", {}, "PIL", "video"),
    ("contact_sheet", "a.png", {}, "PIL", "video"),
    ("to_parquet", "a.parquet", {}, "pyarrow", "parquet"),
    ("to_parquet", "a.parquet", {"frames": "png"}, "PIL", "parquet"),
    ("to_dataset", "a", {}, "datasets", "datasets"),
    ("to_dataset", "a", {}, "pyarrow", "datasets"),
    ("to_dataset", "a", {}, "PIL", "datasets"),
    ("to_minari", "a-v0", {"terminal_frames": True}, "minari", "minari"),
    ("to_minari", "a-v0", {"terminal_frames": True}, "gymnasium", "minari"),
    ("to_minari", "a-v0", {"terminal_frames": True}, "PIL", "minari"),
    ("to_minari", "a-v0", {"terminal_frames": True}, "pyarrow", "minari"),
    ("to_minari", "a-v0", {"terminal_frames": True, "data_format": "hdf5"}, "h5py", "minari"),
]
PLAYING = [
    ("RecordEnv", "gymnasium", "gym"),
    ("TerminalFrame", "gymnasium", "gym"),
    ("VecRecord", "gymnasium", "sb3"),
    ("VecRecord", "stable_baselines3", "sb3"),
    ("RecordCallback", "gymnasium", "sb3"),
    ("RecordCallback", "stable_baselines3", "sb3"),
]


@pytest.fixture
def without(monkeypatch):
    """Hide a library, and import modules that need it again."""

    def without(library, *anew):
        for name in list(sys.modules):
            if any(name == gone or name.startswith(f"{gone}.") for gone in (library, *anew)):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, library, None)

    monkeypatch.setattr(PYTHON, (3, 11))  # Minari needs 3.11
    return without


def line(extra):
    return f"Run: {install_command('sb3-extra-buffers-recording', extra)}"


@pytest.mark.parametrize(("method", "name", "options", "library", "extra"), EXPORTS)
def test_the_error_names_the_extra_to_install(
    method, name, options, library, extra, tmp_path, play, record, without, monkeypatch
):
    buffer = record(RecordBuffer((20, 24), 3, 5), play(5))
    without(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    with pytest.raises(MissingExtraError, match=method) as caught:
        getattr(buffer, method)(name, **options)
    assert str(caught.value).endswith(line(extra))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("needed", "missing", "method"), [("minari", "gymnasium", "to_minari"), ("datasets", "pyarrow", "to_dataset")]
)
def test_a_missing_dependency_of_a_library_names_the_extra_of_the_feature(needed, missing, method, without):
    importlib.import_module(needed)  # so that monkeypatch restores all of its modules
    without(missing, needed)
    with pytest.raises(MissingExtraError, match=f"'{missing}'") as caught:
        require(needed, method)
    assert str(caught.value).endswith(line(needed))


@pytest.mark.parametrize(("name", "library", "extra"), PLAYING)
def test_wrappers_and_callback_name_their_extra(name, library, extra, without):
    pytest.importorskip("stable_baselines3")
    without(library, *(f"{recording.__name__}.{name}" for name in ("callback", "record_env", "vec_record")))
    with pytest.raises(MissingExtraError, match=name) as caught:
        getattr(recording, name)
    assert str(caught.value).endswith(line(extra))


@pytest.mark.parametrize("library", ["minari", "h5py"])
def test_on_an_old_python_the_error_names_the_needed_version(library, without, monkeypatch):
    without(library)
    monkeypatch.setattr(PYTHON, (3, 10))
    with pytest.raises(MissingExtraError, match=f"'{library}', which is not installed") as caught:
        require(library, "to_minari")
    assert str(caught.value).endswith("to_minari needs Python 3.11 or newer, this is Python 3.10.")


def test_the_error_of_a_broken_library_is_not_replaced(tmp_path, monkeypatch):
    (tmp_path / "av.py").write_text("import something_that_av_lacks")
    monkeypatch.delitem(sys.modules, "av", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="something_that_av_lacks") as caught:
        require("av", "to_video")
    assert not isinstance(caught.value, MissingExtraError)
    monkeypatch.delitem(sys.modules, "av", raising=False)

"""Install hints name a command that works from where the user installed."""

import importlib
import json
import shlex
import subprocess
import sys

import pytest

from sb3_extra_buffers.codecs.plugin import CODEC_HOMES
from sb3_extra_buffers.errors import FileVersionError, MissingExtraError
from sb3_extra_buffers.errors.install import install_command
from sb3_extra_buffers.registry.registry import unknown_name

ISAL = "sb3-extra-buffers-codec-isal"
#: pip records nothing of an index, nor of ``--find-links``.
ELSEWHERE = "  # and --find-links, if you installed with it"


@pytest.fixture
def installed_from(site):
    """Record where our distributions were installed from, as pip does."""

    def installed_from(**sources):
        for name, record in {"core": None, "": None, **sources}.items():
            name = "sb3-extra-buffers-core" if name == "core" else "sb3-extra-buffers"
            info = site / f"{name.replace('-', '_')}-1.0.0.dist-info"
            info.mkdir(exist_ok=True)
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
            if record is not None:
                (info / "direct_url.json").write_text(record if isinstance(record, str) else json.dumps(record))
        importlib.invalidate_caches()

    return installed_from


@pytest.fixture
def checkout(tmp_path):
    """A checkout, with a space in its path."""
    for name in ("core", "buffers", "codec-isal"):
        (tmp_path / "my code" / "packages" / name).mkdir(parents=True)
        (tmp_path / "my code" / "packages" / name / "pyproject.toml").touch()
    return tmp_path / "my code" / "packages"


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheelhouse"
    folder.mkdir()
    for name in ("", "_core", "_codec_isal"):
        (folder / f"sb3_extra_buffers{name}-1.0.0-py3-none-any.whl").touch()
    return folder


@pytest.mark.parametrize("how", [{}, {"editable": True}], ids=["plain", "editable"])
@pytest.mark.parametrize("known", ["core", "buffers"])
def test_from_a_checkout_the_folder_is_named(installed_from, checkout, known, how):
    record = {"url": (checkout / known).as_uri(), "dir_info": how}
    installed_from(**{"core" if known == "core" else "": record})
    assert install_command(ISAL) == f'pip install "{checkout}/codec-isal"'
    assert install_command(ISAL, upgrade=True) == f'pip install --upgrade "{checkout}/codec-isal"'
    assert install_command("sb3-extra-buffers", "contrib") == f'pip install "{checkout}/buffers[contrib]"'
    # What the checkout does not have comes from elsewhere.
    assert install_command("sb3-extra-buffers-codec-zstd") == f"pip install sb3-extra-buffers-codec-zstd{ELSEWHERE}"
    assert install_command("somebody-elses") == "pip install somebody-elses"


def test_from_a_checkout_siblings_that_are_missing_are_named_too(installed_from, checkout):
    installed_from(core={"url": (checkout / "core").as_uri(), "dir_info": {}})
    needs = {
        "codec-isal": 'dependencies = ["sb3-extra-buffers-core~=1.0", "sb3-extra-buffers-middle~=1.0", "isal>=1"]\n',
        "middle": 'dependencies = [\n    # A comment.\n    "sb3-extra-buffers-below~=1.0",\n    "numpy",\n]\n',
        "below": '[project.optional-dependencies]\nmore = ["sb3-extra-buffers-absent~=1.0"]\n',
    }
    for name, text in needs.items():
        (checkout / name).mkdir(exist_ok=True)
        (checkout / name / "pyproject.toml").write_text(text)
    assert install_command(ISAL) == f'pip install "{checkout}/codec-isal" "{checkout}/middle" "{checkout}/below"'


def test_from_a_folder_of_wheels_the_folder_is_named(installed_from, wheels):
    wheel = wheels / "sb3_extra_buffers_core-1.0.0-py3-none-any.whl"
    installed_from(core={"url": wheel.as_uri(), "archive_info": {}})
    assert install_command(ISAL) == f'pip install --find-links "{wheels}" {ISAL}'
    extra = install_command("sb3-extra-buffers", "contrib")
    assert extra == f'pip install --find-links "{wheels}" "sb3-extra-buffers[contrib]>=1"'
    assert install_command("sb3-extra-buffers-codec-zstd") == f"pip install sb3-extra-buffers-codec-zstd{ELSEWHERE}"


@pytest.mark.parametrize(
    "record",
    [
        None,
        "",
        "no JSON",
        "[]",
        {"url": None},
        {"url": "file:///nowhere/packages/core", "dir_info": {}},
        {"url": "file:///nowhere/sb3_extra_buffers_core-1.0.0-py3-none-any.whl", "archive_info": {}},
        {"url": "https://example.org/sb3_extra_buffers_core-1.0.0-py3-none-any.whl", "archive_info": {}},
    ],
    ids=str,
)
def test_otherwise_the_name_is_enough_and_a_broken_record_is_no_error(installed_from, record):
    installed_from(core=record)
    assert install_command(ISAL) == f"pip install {ISAL}{ELSEWHERE}"
    extra = install_command("sb3-extra-buffers", "contrib")
    assert extra == f'pip install "sb3-extra-buffers[contrib]>=1"{ELSEWHERE}'
    # A shell takes the rest for a comment.
    assert shlex.split(extra, comments=True) == ["pip", "install", "sb3-extra-buffers[contrib]>=1"]


def test_every_error_with_a_hint_names_this_command(installed_from, checkout):
    installed_from(core={"url": (checkout / "core").as_uri(), "dir_info": {}})
    (checkout / "storage").mkdir()
    (checkout / "storage" / "pyproject.toml").touch()
    folder = str(checkout)
    assert str(unknown_name("codec", "igzip", [], CODEC_HOMES)).endswith(f'Run: pip install "{folder}/codec-isal"')
    missing = MissingExtraError("x", "sb3-contrib", "contrib")
    assert str(missing).endswith(f'Run: pip install "{folder}/buffers[contrib]"')
    # An extra would ask an index for the distribution that it names.
    assert str(MissingExtraError("x", ISAL, "isal")).endswith(f'Run: pip install "{folder}/codec-isal"')
    assert str(FileVersionError("a.bin", 7, 1)).endswith(f'Run: pip install --upgrade "{folder}/storage"')


def test_nothing_is_read_before_a_message_is_written():
    code = "import sys, sb3_extra_buffers.errors; print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1800)
    assert done.stdout == "False\n", done.stderr

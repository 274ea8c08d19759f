"""There is the old file or the new one, whatever happens in between."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from sb3_extra_buffers import checkpoints
from sb3_extra_buffers.checkpoints import atomic
from sb3_extra_buffers.checkpoints.atomic import UNFINISHED


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def begin_and_stop(path):
    with checkpoints.replacing(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        begin_and_stop(tmp_path / "a")
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_until_the_end_the_old_file_is_there(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with checkpoints.replacing(tmp_path / "a") as file:
        file.write(b"new")
        assert (tmp_path / "a").read_bytes() == b"old"
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_the_file_can_be_read_by_whom_the_process_lets(tmp_path):
    before = os.umask(0o027)
    try:
        checkpoints.write(tmp_path / "a", {}, {}, "test")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


LIMITED = """
import resource, signal, sys
import numpy as np
from sb3_extra_buffers import checkpoints
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    checkpoints.write(sys.argv[1], {"x": np.ones(300_000, np.uint8)}, {}, "test")
except OSError as error:
    sys.exit(error.errno)
"""


@pytest.mark.parametrize("limit", [0, 1, 100, 1_000, 100_000, 300_000])
def test_where_the_system_takes_no_more_bytes_the_old_file_stays(tmp_path, limit):
    pytest.importorskip("resource")
    checkpoints.write(tmp_path / "a", {"x": np.arange(3)}, {}, "test")
    done = subprocess.run([sys.executable, "-c", LIMITED, tmp_path / "a", str(limit)])
    assert done.returncode == errno.EFBIG
    assert checkpoints.open_arrays(tmp_path / "a", verify=True)["x"].tolist() == [0, 1, 2]
    assert names(tmp_path) == ["a"]


KILLED = """
import os, signal, sys
import numpy as np
from sb3_extra_buffers import checkpoints
with checkpoints.replacing(sys.argv[1]) as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_killed_process_leaves_the_old_file_and_one_that_is_marked(tmp_path):
    checkpoints.write(tmp_path / "a", {"x": np.arange(3)}, {}, "test")
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "a"])
    assert done.returncode == -signal.SIGKILL
    assert checkpoints.open_arrays(tmp_path / "a", verify=True)["x"].tolist() == [0, 1, 2]
    left, kept = names(tmp_path)
    assert kept == "a"
    assert left.endswith(UNFINISHED)


WRITING = """
import sys
from sb3_extra_buffers import checkpoints
with checkpoints.replacing(sys.argv[1]) as file:
    file.write(b"half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer():
    """Start a process that is in the middle of replacing a file."""
    started = []

    def writer(path):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "writing\n"
        return process

    yield writer
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_a_killed_process_has_left_is_removed_by_the_next_that_writes_the_same_file(tmp_path, writer):
    for name in ("a", "b", "a.b"):
        killed = writer(tmp_path / name)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    others = [".a.unfinished", ".a.0123456789abcdef.unfinished.txt", f".a.{'0' * 15}.unfinished"]
    for name in others:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / f".a.{'0' * 16}.unfinished").mkdir()
    assert sum(name.endswith(UNFINISHED) for name in names(tmp_path)) == 6
    checkpoints.write(tmp_path / "a", {}, {}, "test")
    left = [name for name in names(tmp_path) if name not in others]
    assert [name.split(".")[1] for name in left if name.endswith(UNFINISHED)] == ["a", "a", "b"]
    assert f".a.{'0' * 16}.unfinished" in left  # a folder
    assert not any(name.startswith(".a.") and (tmp_path / name).is_file() for name in left if ".b." not in name)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_what_another_process_is_writing_stays(tmp_path, writer):
    other = writer(tmp_path / "a")
    checkpoints.write(tmp_path / "a", {}, {}, "test")
    assert len(names(tmp_path)) == 2
    other.communicate("", timeout=600)
    assert other.returncode == 0
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"half"


def test_a_file_that_was_taken_for_a_stale_one_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    real, removed = atomic.try_lock, []

    def try_lock(number):
        if not removed:  # another process is faster
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        return real(number)

    monkeypatch.setattr(atomic, "try_lock", try_lock)
    with checkpoints.replacing(tmp_path / "a") as file:
        file.write(b"new")
    assert removed
    assert (tmp_path / "a").read_bytes() == b"new"

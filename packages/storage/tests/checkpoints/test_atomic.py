"""There is the old file or the new one, whatever happens in between."""

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from sb3_extra_buffers import checkpoints
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

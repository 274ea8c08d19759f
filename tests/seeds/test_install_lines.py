"""Every install line of the published documents, resolved by pip without an index: our names, the right libraries."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, requires

import pytest

MINIMUM = "stable-baselines3 torch sb3-extra-buffers-recording sb3-extra-buffers-heap-mmap"
#: What is typed after ``pip install``, and distributions that must come with it.
LINES = {
    "sb3-extra-buffers": MINIMUM,
    "sb3_extra_buffers": MINIMUM,
    "sb3-extra-buffers[fast,extra]": f"{MINIMUM} isal numba zstandard lz4 tensorboard tqdm rich psutil matplotlib",
    "sb3-extra-buffers[extra]": "opencv-python-headless tensorboard tqdm rich psutil matplotlib ale-py pillow",
    "sb3-extra-buffers[fast]": f"{MINIMUM} isal numba zstandard lz4",
    "sb3_extra_buffers[fast]": "isal numba",
    "sb3-extra-buffers[isal]": "isal",
    "sb3_extra_buffers[isal]": "isal",
    "sb3-extra-buffers[numba]": "numba",
    "sb3_extra_buffers[numba]": "numba",
    "sb3-extra-buffers[zstd]": "zstandard",
    "sb3-extra-buffers[lz4]": "lz4",
    "sb3_extra_buffers[atari]": "gymnasium ale-py opencv-python-headless",
    "sb3-extra-buffers[vizdoom]": "vizdoom",
    "sb3_extra_buffers[vizdoom]": "gymnasium vizdoom",
}
#: Named in the comments of the lines as the only library that comes.
ONLY = {"isal": "isal", "numba": "numba", "zstd": "zstandard", "lz4": "lz4"}
LIBRARIES = {*ONLY.values(), "ale-py", "vizdoom", "opencv-python-headless", "opencv-python"}


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(line):
    """Names of the distributions that a line asks for, directly and through others, as their metadata say."""
    from packaging.requirements import Requirement

    found, asked, seen = set(), [Requirement(line)], set()
    while asked:
        requirement = asked.pop()
        for extra in {"", *requirement.extras}:
            if (normal(requirement.name), extra) in seen:
                continue
            seen.add((normal(requirement.name), extra))
            found.add(normal(requirement.name))
            try:
                needed = requires(requirement.name) or []
            except PackageNotFoundError:
                continue
            for text in needed:
                further = Requirement(text)
                if further.marker is None or further.marker.evaluate({"extra": extra}):
                    asked.append(further)
    return found


@pytest.mark.parametrize("line", LINES)
def test_pip_resolves_a_line_and_warns_of_no_unknown_extra(line):
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode:
        pytest.skip("pip is not installed here")
    # Everything is installed: without an index, pip only finds out whether that is what the line asks for.
    asked = [*pip, "install", "--dry-run", "--no-index", "--no-build-isolation", "--disable-pip-version-check", line]
    ran = subprocess.run(asked, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "does not provide the extra" not in ran.stdout + ran.stderr


@pytest.mark.parametrize("line", LINES)
def test_a_line_brings_what_its_comment_says(line):
    asked = closure(line)
    assert set(LINES[line].split()) <= asked
    extra = re.search(r"\[(\w+)\]", line)
    if extra and extra[1] in ONLY:
        assert asked & LIBRARIES == {ONLY[extra[1]]}


@pytest.mark.parametrize("line", LINES)
def test_no_line_asks_for_two_builds_of_opencv(line):
    assert len({name for name in closure(line) if name.startswith("opencv")}) <= 1


def test_both_spellings_of_the_name_are_one_distribution():
    assert distribution("sb3_extra_buffers").name == distribution("sb3-extra-buffers").name

"""Every install line of the published documents, resolved by pip without an index: our names, the right libraries."""

import ast
import json
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WHEELHOUSE = ROOT / ".wheelhouse"
PIP = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--disable-pip-version-check"]
MINIMUM = "stable-baselines3 torch sb3-extra-buffers-recording sb3-extra-buffers-heap-mmap"
#: What is typed after ``pip install``, and distributions that must come with it.
LINES = {
    "sb3-extra-buffers": MINIMUM,
    "sb3_extra_buffers": MINIMUM,
    "sb3-extra-buffers[fast,extra]": f"{MINIMUM} isal numba zstandard lz4 tensorboard tqdm rich psutil matplotlib",
    "sb3-extra-buffers[extra]": "opencv-python-headless tensorboard tqdm rich psutil matplotlib ale-py pillow",
    # With the games of the quick example in the article, which begins with this line.
    "sb3-extra-buffers[fast]": f"{MINIMUM} isal numba zstandard lz4 ale-py opencv-python-headless",
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
    # Everything is installed: without an index, pip only finds out whether that is what the line asks for.
    ran = subprocess.run([*PIP, line], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "does not provide the extra" not in ran.stdout + ran.stderr


def test_all_that_is_ours_in_the_lines_comes_from_the_wheelhouse(tmp_path):
    if not list(WHEELHOUSE.glob("*.whl")):
        pytest.skip("needs what the session 'wheels' prepares. Run: nox -s wheels")
    siblings = {name for line in LINES for name in closure(line) if name.startswith("sb3-extra-buffers")}
    assert {"sb3-extra-buffers", "sb3-extra-buffers-recording", "sb3-extra-buffers-codec-zstd"} <= siblings
    # As if nothing was installed, without libraries of others, which the wheelhouse does not have.
    fresh = ["--ignore-installed", "--no-deps", "--find-links", str(WHEELHOUSE), "--report", str(tmp_path / "report")]
    ran = subprocess.run([*PIP, *fresh, *LINES, *siblings], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "does not provide the extra" not in ran.stdout + ran.stderr
    report = json.loads((tmp_path / "report").read_text())["install"]
    assert {normal(one["metadata"]["name"]) for one in report} == siblings
    assert {Path(one["download_info"]["url"]).parent.name for one in report} == {WHEELHOUSE.name}


def test_the_session_combos_installs_every_extra_of_the_lines():
    table = re.search(r"^COMBINATIONS = (\{.*?^\})", (ROOT / "noxfile.py").read_text(), re.MULTILINE | re.DOTALL)
    combinations = ast.literal_eval(table[1])
    asked = {line.partition("[")[2].rstrip("]") for line in LINES}
    assert {"", "fast", "fast,extra"} <= asked & set(combinations)
    assert {extra for line in asked for extra in line.split(",")} <= {
        extra for line in combinations for extra in line.split(",")
    }


@pytest.mark.parametrize("line", LINES)
def test_a_line_brings_what_its_comment_says(line):
    asked = closure(line)
    assert set(LINES[line].split()) <= asked
    extra = re.search(r"\[(\w+)\]", line)
    if extra and extra[1] in ONLY:
        assert asked & LIBRARIES == {ONLY[extra[1]]}


@pytest.mark.parametrize(
    "line", [*LINES, "sb3-extra-buffers[atari,extra,fast,vizdoom]", "sb3-extra-buffers[all,extra]"]
)
def test_no_line_asks_for_two_builds_of_opencv(line):
    assert len({name for name in closure(line) if name.startswith("opencv")}) <= 1


def test_both_spellings_of_the_name_are_one_distribution():
    assert distribution("sb3_extra_buffers").name == distribution("sb3-extra-buffers").name

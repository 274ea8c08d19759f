"""The only matrix: every distribution alone, together and in the combinations that people install.

``nox`` runs the sessions that find most faults, ``nox -t full`` the others, ``nox -t default full`` both.
``nox -l`` lists the sessions; ``nox -s tests -- -k rle`` passes arguments on to pytest.
Sessions install wheels, never the source tree: what passes here is what users get. A session has an environment of its
own if it is about what is installed; the others share that of the session "everything".
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import nox

ROOT = Path(__file__).parent
WHEELHOUSE = ROOT / ".wheelhouse"
REPORTS = ROOT / ".reports"
CONSTRAINTS = ROOT / "constraints.txt"
#: Our own names, each as one file: an index that offers the same name, in any version, is never asked for it.
SIBLINGS = WHEELHOUSE / "constraints.txt"
GROUPS = nox.project.load_toml("pyproject.toml")

#: One table drives everything: the folders under packages/.
PACKAGES = {
    path.parent.name: nox.project.load_toml(path)["project"] for path in sorted(ROOT.glob("packages/*/pyproject.toml"))
}
VERSION = PACKAGES["core"]["version"]
#: Plugins as a stranger would write them: a codec and a heap.
TEMPLATES = sorted(path.parent for path in ROOT.glob("examples/*-template/pyproject.toml"))
OUTSIDERS = [nox.project.load_toml(path / "pyproject.toml")["project"]["name"] for path in TEMPLATES]

#: Distributions without torch.
LIGHT = [folder for folder in PACKAGES if folder not in ("buffers", "cli", "gpu")]
#: The session "buffers" tests this one, with more than one set of codecs.
ALONE = [folder for folder in PACKAGES if folder != "buffers"]

#: The session "tests" uses the Python that runs nox.
OWN_PYTHON = ".".join(platform.python_version_tuple()[:2])
SUPPORTED = ("3.10", "3.11", "3.12", "3.13")
OTHER_PYTHONS = [version for version in SUPPORTED if version != OWN_PYTHON]

#: What people type in brackets, and the codecs they expect for it besides the built-in ones.
COMBINATIONS = {
    "": [],
    "zstd": ["zstd"],
    "lz4": ["lz4-block", "lz4-frame"],
    "isal": ["igzip"],
    "numba": ["rle-jit"],
    "zstd,numba": ["zstd", "rle-jit"],
    "fast": ["igzip", "lz4-block", "lz4-frame", "rle-jit", "zstd"],
    "sb3,mmap,recording": [],
    "extra,atari,vizdoom": [],
    "gpu": [],
    "cli,contrib": [],
    "fast,extra": ["igzip", "lz4-block", "lz4-frame", "rle-jit", "zstd"],
    "all": ["igzip", "lz4-block", "lz4-frame", "rle-jit", "zstd"],
}

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
# A machine without one of the Pythons skips it and says so, also in CI.
nox.options.error_on_missing_interpreters = False

# To compile every module of torch takes pip as long as to install it. Instead, the first process that imports a module
# compiles it for those that follow.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
FAST_PIP = ("--quiet", "--no-compile", "--disable-pip-version-check")

# pyenv's shims answer for every version that is installed and then fail for those that are not activated.
for versions in sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob("3.1?.*/bin")):
    os.environ["PATH"] = f"{versions}{os.pathsep}{os.environ['PATH']}"


Function = Callable[..., None]


def default(**options: Any) -> Callable[[Function], Function]:
    """A session that plain ``nox`` runs."""
    return nox.session(tags=["default"], **options)


def full(**options: Any) -> Callable[[Function], Function]:
    """A session that ``nox -t full`` runs."""
    return nox.session(default=False, tags=["full"], **options)


#: Options of a session that needs the wheels, and of one that runs in the environment of the session "everything".
BUILT: dict[str, Any] = {"requires": ["wheels"]}
SHARED: dict[str, Any] = {"venv_backend": "none", "requires": ["everything"]}


def run(session: nox.Session, *command: str, env: dict[str, str] | None = None) -> None:
    """Run a command of the session's own environment or of the shared one."""
    if session.venv_backend == "none":
        scripts = Path(session.cache_dir).parent / "everything" / ("Scripts" if os.name == "nt" else "bin")
        found = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(scripts.parent)}
        session.run(str(scripts / command[0]), *command[1:], env={**found, **(env or {})})
    else:
        session.run(*command, env=env)


def install(session: nox.Session, *requirements: str, groups: tuple[str, ...] = (), optional: bool = False) -> None:
    """Install from our wheels and the index, within the constraints.

    :param optional: go on without it where it cannot be installed
    """
    wanted = [*requirements, *(part for group in groups for part in nox.project.dependency_groups(GROUPS, group))]
    files = [path for path in (SIBLINGS, CONSTRAINTS) if path.exists()]
    constraints = [part for path in files for part in ("--constraint", str(path))]
    session.install(*FAST_PIP, *constraints, *wanted, success_codes=[0, 1] if optional else [0])


def ours(folder: str, extras: str = "") -> str:
    """A distribution of ours in the version of the checkout, as a requirement.

    :param folder: its folder in packages/
    :param extras: what people type in brackets
    """
    return f"{PACKAGES[folder]['name']}{f'[{extras}]' if extras else ''}=={VERSION}"


def pytest(session: nox.Session, *args: str, report: str, env: dict[str, str] | None = None) -> None:
    """Run pytest on both cores; the report is what the totals at the end of a CI run are made of.

    Tests that take long stand beside each other, so an idle worker takes over tests of the other one.
    """
    junit = REPORTS / f"{report.replace(',', '-')}.xml"
    options = ("-q", "-n", "2", "--dist", "worksteal", f"--junitxml={junit}")
    run(session, "pytest", *options, *args, *session.posargs, env=env)


def conformance_tests(folders: Iterable[str]) -> list[str]:
    """The test files that hold the codecs, heaps and kernels of some packages to the contracts."""
    found = [path for folder in folders for path in Path("packages", folder, "tests").rglob("test_conformance.py")]
    return sorted(str(path) for path in found if path.parent.name != "testing")  # there, the kit itself is tested


@default()
def lint(session: nox.Session) -> None:
    """Style, formatting and the direction of imports; needs no wheel, so it answers first."""
    install(session, "numpy", "pluggy", groups=("lint",))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    sources = os.pathsep.join(str(path) for path in sorted(ROOT.glob("packages/*/src")))
    session.run("lint-imports", "--no-logo", "--no-cache", env={"PYTHONPATH": sources})


@default()
def wheels(session: nox.Session) -> None:
    """Build every distribution, source and wheel, and look at what is inside; most other sessions install these."""
    install(session, groups=("build", "test"))
    for old in WHEELHOUSE.glob("*"):
        old.unlink()
    for folder in (*(ROOT / "packages" / name for name in PACKAGES), *TEMPLATES):
        session.run("python", "-m", "build", "--no-isolation", "--outdir", str(WHEELHOUSE), str(folder), silent=True)
    files = [(re.split(r"-\d", path.name)[0], path.as_uri()) for path in sorted(WHEELHOUSE.glob("*.whl"))]
    SIBLINGS.write_text("".join(f"{name} @ {place}\n" for name, place in files), encoding="utf-8")
    # Runs before most other sessions, so arguments that are meant for those must not reach it.
    report = f"--junitxml={REPORTS / 'wheels.xml'}"
    session.run("pytest", "-q", report, "tests/wheels", env={"WHEELHOUSE": str(WHEELHOUSE)})


@default(**BUILT)
def everything(session: nox.Session) -> None:
    """Make the environment that other sessions share: every distribution with its extras, and every tool."""
    extras = ours("buffers", "testing,fast,contrib,atari,vizdoom"), ours("gpu", "testing"), ours("recording", "all")
    groups = ("training", "demo", "docs", "browser", "types")
    install(session, *map(ours, PACKAGES), *extras, *OUTSIDERS, "nox", groups=groups)
    if OWN_PYTHON == "3.11":  # the version that there are wheels of it for
        install(session, "atheris", optional=True)


@default(**SHARED)
def types(session: nox.Session) -> None:
    """mypy, strict, on everything that is not a test."""
    run(session, "mypy")


@default(**BUILT)
@nox.parametrize("package", ALONE)
def tests(session: nox.Session, package: str) -> None:
    """Every distribution alone: nothing is installed but what it declares, so a missing dependency shows here."""
    install(session, ours(package, "testing"), groups=("test",))
    pytest(session, f"packages/{package}/tests", report=f"tests-{package}")


@default(**BUILT)
def buffers(session: nox.Session) -> None:
    """The buffer classes beside those of Stable-Baselines3 and sb3-contrib, with the built-in codecs, then with all."""
    install(session, ours("buffers", "testing,contrib"), groups=("training",))
    pytest(session, "packages/buffers/tests", report="buffers-built-in")
    install(session, ours("buffers", "fast"))
    # Only the buffer classes depend on the codecs that are installed.
    pytest(session, "packages/buffers/tests/compressed", report="buffers-fast")


@full(**BUILT)
def devices(session: nox.Session) -> None:
    """The buffers of "tests(gpu)" again, on the CPU, with every codec installed: what differs is the codecs."""
    install(session, ours("buffers", "fast"), ours("gpu", "testing"), groups=("test",))
    # Kernels and heaps do not depend on the codecs that are installed; the session "tests" runs their tests.
    independent = [f"--ignore=packages/gpu/tests/{folder}" for folder in ("kernels", "memory")]
    pytest(session, "packages/gpu/tests", *independent, report="devices")


@full(**BUILT)
def minimal(session: nox.Session) -> None:
    """The core with no plugin, then the storage on it: each works, and says how to get the rest."""
    install(session, ours("core"), groups=("test",))
    pytest(session, "tests/minimal/test_core_alone.py", report="minimal-core")
    install(session, ours("storage"))
    pytest(session, "tests/minimal/test_storage_alone.py", report="minimal-storage")


@full(**BUILT)
def combos(session: nox.Session) -> None:
    """The extras that people install: exactly their codecs work, the others are explained; "-- zstd gpu" tries two."""
    unknown = sorted(set(session.posargs) - set(COMBINATIONS))
    if unknown:
        session.error(f"no such combination: {' '.join(unknown)}; there are: {' '.join(COMBINATIONS)}")
    # One environment, because torch takes longer to install than everything else together. What a combination adds
    # is removed before the next one.
    install(session, ours("buffers"), groups=("test",))
    before = _installed(session)
    for extras in session.posargs or COMBINATIONS:
        install(session, ours("buffers", extras))
        session.run("python", "-m", "pip", "check", silent=True)
        name = extras.replace(",", "-") or "nothing"
        expected = {"EXPECTED_CODECS": " ".join(COMBINATIONS[extras])}
        session.run("pytest", "-q", f"--junitxml={REPORTS / f'combos-{name}.xml'}", "tests/combos", env=expected)
        if added := sorted(_installed(session) - before):
            session.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", *added, silent=True)


def _installed(session: nox.Session) -> set[str]:
    """Names of the distributions in the environment of a session."""
    listed = session.run("python", "-m", "pip", "list", "--format=freeze", silent=True, log=False)
    return {line.partition("==")[0] for line in str(listed).splitlines() if "==" in line}


@default(**BUILT)
def outsider(session: nox.Session) -> None:
    """Plugins of a stranger: their own tests beside the core alone, then with buffers, then as a stranger begins."""
    alone = "tests/outsider/test_outsider.py"
    install(session, ours("core", "testing"), *OUTSIDERS, groups=("test",))
    for template in TEMPLATES:
        pytest(session, str(template / "tests"), "--rootdir", str(template), report=f"outsider-{template.name}")
    pytest(session, alone, report="outsider-alone")
    install(session, ours("cli"))
    rest = [path for path in sorted(Path("tests/outsider").glob("test_*.py")) if path != Path(alone)]
    if rest:
        pytest(session, *map(str, rest), report="outsider-buffers")
    # Written by the command, installed, held to the contract.
    for kind in ("codec", "heap"):
        fresh = Path(session.create_tmp(), f"fresh-{kind}")
        shutil.rmtree(fresh, ignore_errors=True)
        session.run("sb3-buffers", f"new-{kind}", "fresh", "--folder", str(fresh))
        session.install("--quiet", "--no-deps", str(fresh))
        if kind == "codec":
            golden = str(fresh / "tests" / "golden" / "fresh.json")
            session.run("python", "-m", "sb3_extra_buffers.testing.freeze", "fresh", golden)
        pytest(session, str(fresh / "tests"), "--rootdir", str(fresh), report=f"outsider-fresh-{kind}")


@default(**SHARED)
def together(session: nox.Session) -> None:
    """Everything in one environment: what needs several distributions, documents, examples, the published pages."""
    pytest(session, "tests", "--durations=10", "--tb=short", report="together")


@full(**SHARED)
def docs(session: nox.Session) -> None:
    """The site, with warnings as errors; ``-- --version-folder`` builds into a folder that is named for the version."""
    if sys.version_info < (3, 11):
        session.skip("the Sphinx that the site is made for needs Python 3.11")
    build = ROOT / "docs" / "_build"
    html = build / (VERSION if "--version-folder" in session.posargs else "html")
    # A page that was removed must not stay, and every warning must be seen again.
    shutil.rmtree(html, ignore_errors=True)
    strict = ["--fail-on-warning", "--keep-going", "--fresh-env", "--quiet"]
    run(session, "sphinx-build", *strict, "--doctree-dir", str(build / "doctrees"), "docs", str(html))
    session.log(f"{html / 'index.html'}")


@full(requires=["docs"], venv_backend="none")
def browser(session: nox.Session) -> None:
    """A real browser looks at every page of the site: console, requests, links, search, dark mode, narrow screens."""
    found = {"CHROMIUM": shutil.which("chromium"), "CHROMEDRIVER": shutil.which("chromedriver")}
    missing = [name.lower() for name, path in found.items() if path is None]
    if missing:
        session.skip(f"{' and '.join(missing)} not found; on Debian: apt-get install chromium chromium-driver")
    if not (ROOT / "docs" / "_build" / "html" / "index.html").exists():
        session.skip("there is no site to look at: see the session docs")
    # One browser, so one process.
    report = f"--junitxml={REPORTS / 'browser.xml'}"
    paths = {name: path for name, path in found.items() if path is not None}
    run(session, "pytest", "-q", report, "tests/browser", env={**paths, "SCREENSHOTS": str(REPORTS / "browser")})


@full(python=OTHER_PYTHONS, **BUILT)
def pythons(session: nox.Session) -> None:
    """The layers without torch on other Pythons: all tests on the oldest and the newest, the kit on those between."""
    install(session, *map(ours, LIGHT), ours("storage", "testing"), groups=("test",))
    # Whether the kit catches liars, and what an interrupt at each line leaves behind, does not depend on the Python;
    # the session "tests" finds out.
    independent = ("packages/core/tests/testing", "packages/storage/tests/stores/test_interrupts.py")
    folders = [f"packages/{package}/tests" for package in LIGHT]
    if session.python in (SUPPORTED[0], SUPPORTED[-1]):
        ignored = [f"--ignore={path}" for path in independent]
        pytest(session, *folders, *ignored, report=f"pythons-{session.python}")
    else:
        pytest(session, *conformance_tests(LIGHT), report=f"pythons-{session.python}")


@full(**BUILT)
def lowest(session: nox.Session) -> None:
    """The lowest declared versions of dependencies: the kit on each codec, heap and kernel; buffers; the commands."""
    if sys.version_info >= (3, 12):
        session.skip("the lowest numpy has no wheels for this Python")
    asked = [part for project in PACKAGES.values() for part in project["dependencies"]]
    for folder, extra in ("core", "testing"), ("buffers", "contrib"):
        asked += PACKAGES[folder]["optional-dependencies"][extra]
    # Not torch: its lowest version has no CPU build on every index, so it stays as in the constraints.
    bounds = dict(
        found.groups() for part in asked if (found := re.match(r"(?!torch|sb3-extra)([\w-]+)>=([\w.]+)", part))
    )
    tools = [part for part in nox.project.dependency_groups(GROUPS, "test") if part not in bounds]
    pinned = [line for line in CONSTRAINTS.read_text().splitlines() if line.partition("==")[0] in ("torch", *tools)]
    pins = Path(session.create_tmp(), "lowest.txt")
    pins.write_text("\n".join([*pinned, *(f"{name}=={bound}" for name, bound in bounds.items())]))
    wanted = [ours("buffers", "fast,contrib,cli,testing"), ours("gpu"), *bounds, *tools]
    session.install(*FAST_PIP, "--constraint", str(SIBLINGS), "--constraint", str(pins), *wanted)
    # The settings of this repository are for a newer pytest than the kit needs, and old libraries warn of newer ones.
    settings = Path(session.create_tmp(), "pytest.ini")
    settings.write_text("[pytest]\naddopts = --import-mode=importlib\n")
    tried = [*conformance_tests(LIGHT), "tests/lowest"]
    pytest(
        session,
        "-c",
        str(settings),
        "--rootdir",
        str(ROOT),
        *tried,
        report="lowest",
        env={"LOWEST": json.dumps(bounds)},
    )


@full(**SHARED)
def kernels(session: nox.Session) -> None:
    """Every Triton kernel compiled for the devices that people have: registers, spills and wide stores, as a table."""
    run(session, "python", "scripts/compile_kernels.py", *session.posargs)


@full(**SHARED)
def fuzz(session: nox.Session) -> None:
    """Every decoder and reader of files is given bytes that are nearly right, each for a second or two."""
    run(session, "python", "-m", "scripts.fuzz", *(session.posargs or ["--seconds", "1"]))


@full(**BUILT)
def demo(session: nox.Session) -> None:
    """Train from images with a compressed buffer, and show what was learnt and what memory it took."""
    install(session, ours("buffers", "fast"), groups=("demo",))
    run(session, "python", "examples/example_demo.py", *session.posargs)


@full(**SHARED)
def pong(session: nox.Session) -> None:
    """The examples of buffers on a device, in a short form: train from images twice, and watch what was learnt."""
    for kind in ("replay", "rollout"):
        folder = str(Path(session.create_tmp(), kind))
        device = session.posargs or ["--device", "cpu"]
        run(session, "python", f"examples/example_train_gpu_{kind}.py", "--quick", *device, "--save", folder)
        watch = ["--quick", *device, "--load", folder, "--render", "none"]
        run(session, "python", f"examples/example_watch_gpu_{kind}.py", *watch)


@full(**SHARED)
def examples(session: nox.Session) -> None:
    """The other examples in a short form; the session "together" tests what they are made of."""
    out = session.create_tmp()
    evaluations = [["eval_memory_saving", "--out", out], ["eval_memory_loading", "--out", out]]
    doom = ["doom_segmentation", "--plot", str(Path(out, "doom.png")), "--train", "256"]
    for name, *arguments in (*evaluations, doom, ["train_actors", "--kill"]):
        run(session, "python", f"examples/example_{name}.py", "--quick", *arguments)


@full(**SHARED)
def learning(session: nox.Session) -> None:
    """The examples that train, evaluate and watch, in a short form, with compressed buffers and with SB3's own."""
    folder = Path(session.create_tmp())
    for trainer, algorithm, game in (("replay", "dqn", "MsPacman"), ("rollout", "ppo", "Pong")):
        for buffer in ("sb3", "compressed"):
            short = ["--quick", "--envs", "2", "--game", game, "--buffer", buffer, "--save", str(folder)]
            run(session, "python", f"examples/example_train_{trainer}.py", *short)
        model = ["--quick", "--game", game, "--algorithm", algorithm, "--load", str(folder)]
        run(session, "python", "examples/example_evaluate.py", *model, "--keep", "2000")
        watched = ["--render", "video", "--video", str(folder / f"{game}.mp4")]
        run(session, "python", "examples/example_watch.py", *model, *watched)
    for trainer in ("her", "dict"):
        run(session, "python", f"examples/example_train_{trainer}.py", "--quick")
    run(
        session, "python", "examples/example_train_prioritized.py", "--quick", "--plot", str(folder / "prioritized.svg")
    )
    curves = ["--json", str(folder / "curves.json"), "--plot", str(folder / "curves.svg")]
    run(session, "python", "examples/example_learning_curves.py", "--quick", *curves)


@full(**SHARED)
def bench(session: nox.Session) -> None:
    """The benchmarks, in a short form; ``nox -s bench -- buffers --game Pong`` runs one of them in full."""
    short = [[name, "--quick"] for name in ("buffers", "codecs", "gpu", "recordings", "choosing", "prioritized")]
    short += [["frames", "--quick", "--games", "MsPacman"], ["imports"]]
    short += [["kinds", "--quick", "--kinds", "atari", "doom"]]
    short += [["cold_reads", "--megabytes", "64", "--times", "3"]]
    chosen = [session.posargs] if session.posargs else short
    for name, *arguments in chosen:
        run(session, "python", "-m", f"benchmarks.{name}", *arguments)

"""The only matrix: every distribution alone, together and in the combinations that people install.

``nox`` runs everything; ``nox -l`` lists the sessions; ``nox -s tests -- -k rle`` passes arguments on to pytest.
Sessions install wheels, never the source tree: what passes here is what users get.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

import nox

ROOT = Path(__file__).parent
WHEELHOUSE = ROOT / ".wheelhouse"
REPORTS = ROOT / ".reports"
CONSTRAINTS = ROOT / "constraints.txt"
GROUPS = nox.project.load_toml("pyproject.toml")

#: One table drives everything: the folders under packages/.
PACKAGES = {
    path.parent.name: nox.project.load_toml(path)["project"] for path in sorted(ROOT.glob("packages/*/pyproject.toml"))
}
PINNED = {folder: f"{project['name']}=={project['version']}" for folder, project in PACKAGES.items()}
TEMPLATE = ROOT / "examples" / "plugin-template"
OUTSIDER = nox.project.load_toml(TEMPLATE / "pyproject.toml")["project"]["name"]
CORE_VERSION = PACKAGES["core"]["version"]

#: Tests of the core that need Stable-Baselines3.
NEED_SB3 = ("advisor", "cli", "compressed", "training_utils", "vec_buf")

#: The version that runs nox is what the session «tests» has.
OWN_PYTHON = ".".join(platform.python_version_tuple()[:2])
OTHER_PYTHONS = [version for version in ("3.10", "3.11", "3.12", "3.13") if version != OWN_PYTHON]

#: What people type in brackets, and the codecs they expect for it besides the built-in ones.
COMBINATIONS = {
    "nothing": [],
    "zstd": ["zstd"],
    "lz4": ["lz4-block", "lz4-frame"],
    "isal": ["igzip"],
    "numba": ["rle-jit"],
    "zstd,numba": ["zstd", "rle-jit"],
    "fast": ["igzip", "lz4-block", "lz4-frame", "rle-jit", "zstd"],
    "fast,extra": ["igzip", "lz4-block", "lz4-frame", "rle-jit", "zstd"],
    "vizdoom": [],
    "gpu": [],
    "recording": [],
    "cli": [],
    "all": ["igzip", "lz4-block", "lz4-frame", "rle-jit", "zstd"],
}

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
# A machine without one of the Pythons skips it and says so, also in CI.
nox.options.error_on_missing_interpreters = False

# pyenv's shims answer for every version that is installed and then fail for those that are not activated.
for versions in sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob("3.1?.*/bin")):
    os.environ["PATH"] = f"{versions}{os.pathsep}{os.environ['PATH']}"


def install(session: nox.Session, *requirements: str, groups: tuple[str, ...] = ()) -> None:
    """Install from our wheels and the index, within the constraints."""
    wanted = [*requirements, *(part for group in groups for part in nox.project.dependency_groups(GROUPS, group))]
    session.install("--quiet", "--constraint", str(CONSTRAINTS), "--find-links", str(WHEELHOUSE), *wanted)


def pytest(session: nox.Session, *args: str, report: str, env: dict[str, str] | None = None) -> None:
    """Run pytest on both cores; the report is what the totals at the end of a CI run are made of."""
    junit = REPORTS / f"{report.replace(',', '-')}.xml"
    session.run("pytest", "-q", "-n", "2", f"--junitxml={junit}", *args, *session.posargs, env=env)


def core(extras: str = "") -> str:
    """The core from our wheelhouse, with extras. The version keeps pip from taking an older one from the index."""
    return f"sb3-extra-buffers{f'[{extras}]' if extras else ''}=={CORE_VERSION}"


@nox.session
def lint(session: nox.Session) -> None:
    """Style, formatting and the direction of imports."""
    install(session, "numpy", "pluggy", groups=("lint",))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    sources = os.pathsep.join(str(path) for path in sorted(ROOT.glob("packages/*/src")))
    session.run("lint-imports", "--no-logo", "--no-cache", env={"PYTHONPATH": sources})


@nox.session
def types(session: nox.Session) -> None:
    """mypy, strict, on everything that is not a test."""
    libraries = [part for project in PACKAGES.values() for part in project["dependencies"] if "sb3-extra" not in part]
    install(session, *libraries, "sb3-contrib", "torch", "nox", groups=("types",))
    session.run("mypy")


@nox.session
def wheels(session: nox.Session) -> None:
    """Build every distribution, source and wheel, and look at what is inside."""
    install(session, groups=("build", "test"))
    for old in WHEELHOUSE.glob("*"):
        old.unlink()
    for folder in (*(ROOT / "packages" / name for name in PACKAGES), TEMPLATE):
        session.run("python", "-m", "build", "--no-isolation", "--outdir", str(WHEELHOUSE), str(folder), silent=True)
    # Runs before most other sessions, so arguments that are meant for those must not reach it.
    report = f"--junitxml={REPORTS / 'wheels.xml'}"
    session.run("pytest", "-q", report, "tests/wheels", env={"WHEELHOUSE": str(WHEELHOUSE)})


@nox.session(requires=["wheels"])
@nox.parametrize("package", list(PACKAGES))
def tests(session: nox.Session, package: str) -> None:
    """Every distribution alone, with nothing installed but what it declares."""
    name, _, version = PINNED[package].partition("==")
    install(session, f"{name}[testing]=={version}", core(), groups=("test",))
    pytest(session, f"packages/{package}/tests", report=f"tests-{package}")


@nox.session(requires=["wheels"])
@nox.parametrize("codecs", ["built-in", "fast"])
def buffers(session: nox.Session, codecs: str) -> None:
    """What needs Stable-Baselines3, beside its classes and those of sb3-contrib, with every codec that is installed."""
    install(session, core("testing,contrib,cli" + (",fast" if codecs == "fast" else "")), groups=("training",))
    folders = [f"packages/core/tests/{folder}" for folder in NEED_SB3]
    pytest(session, *folders, report=f"buffers-{codecs}")


@nox.session(requires=["wheels"])
def devices(session: nox.Session) -> None:
    """Buffers on a device, as far as the CPU shows it, with every codec that is installed."""
    name, _, version = PINNED["gpu"].partition("==")
    install(session, core("fast"), f"{name}[testing]=={version}", groups=("test",))
    # What kernels do does not depend on the codecs that are installed; the session «tests» finds out.
    pytest(session, "packages/gpu/tests", "--ignore=packages/gpu/tests/kernels", report="devices")


@nox.session(requires=["wheels"])
def minimal(session: nox.Session) -> None:
    """The core with no plugin: it lists and binds its own and says how to get the rest."""
    install(session, core(), groups=("test",))
    pytest(session, "tests/minimal", report="minimal")


@nox.session(requires=["wheels"])
@nox.parametrize("extras", list(COMBINATIONS))
def combos(session: nox.Session, extras: str) -> None:
    """The combinations of codecs that people install: exactly these are there, work, and the others are explained."""
    install(session, core("" if extras == "nothing" else extras), groups=("test",))
    pytest(session, "tests/combos", report=f"combos-{extras}", env={"EXPECTED_CODECS": " ".join(COMBINATIONS[extras])})


@nox.session(requires=["wheels"])
def outsider(session: nox.Session) -> None:
    """A stranger's codec beside the core alone: listed, bound and held to the contract by the stranger's own tests."""
    install(session, core("testing,cli"), OUTSIDER, groups=("test",))
    pytest(session, "examples/plugin-template/tests", "tests/outsider", report="outsider")
    # As a stranger begins one: written by the command, installed, frozen, held to the contract.
    fresh = Path(session.create_tmp(), "fresh-codec")
    shutil.rmtree(fresh, ignore_errors=True)
    session.run("sb3-buffers", "new-codec", "fresh", "--folder", str(fresh))
    session.install("--quiet", "--no-deps", str(fresh))
    golden = str(fresh / "tests" / "golden" / "fresh.json")
    session.run("python", "-m", "sb3_extra_buffers.testing.freeze", "fresh", golden)
    pytest(session, str(fresh / "tests"), "--rootdir", str(fresh), report="outsider-fresh")


@nox.session(requires=["wheels"])
def together(session: nox.Session) -> None:
    """Everything in one environment: what needs several distributions, and the documents."""
    # The documents export recordings to whatever there is an extra for.
    exports = PINNED["recording"].replace("==", "[all]==")
    install(session, core("testing,contrib,cli"), *PINNED.values(), exports, OUTSIDER, groups=("training",))
    pytest(session, "tests/together", report="together")


@nox.session(requires=["wheels"])
def docs(session: nox.Session) -> None:
    """The site, with warnings as errors; «-- --version-folder» builds into a folder that is named for the version."""
    if sys.version_info < (3, 11):
        session.skip("the Sphinx that the site is made for needs Python 3.11")
    install(session, core("contrib,testing"), PINNED["gpu"], PINNED["recording"], groups=("docs",))
    build = ROOT / "docs" / "_build"
    html = build / (CORE_VERSION if "--version-folder" in session.posargs else "html")
    # A page that was removed must not stay, and every warning must be seen again.
    shutil.rmtree(html, ignore_errors=True)
    strict = ["--fail-on-warning", "--keep-going", "--fresh-env", "--quiet"]
    session.run("sphinx-build", *strict, "--doctree-dir", str(build / "doctrees"), "docs", str(html))
    session.log(f"{html / 'index.html'}")


@nox.session(requires=["docs"])
def browser(session: nox.Session) -> None:
    """A real browser looks at every page of the site: console, requests, links, search, dark mode, narrow screens."""
    found = {"CHROMIUM": shutil.which("chromium"), "CHROMEDRIVER": shutil.which("chromedriver")}
    missing = [name.lower() for name, path in found.items() if path is None]
    if missing:
        session.skip(f"{' and '.join(missing)} not found; on Debian: apt-get install chromium chromium-driver")
    if not (ROOT / "docs" / "_build" / "html" / "index.html").exists():
        session.skip("there is no site to look at: see the session «docs»")
    install(session, groups=("browser",))
    # One browser, so one process.
    report = f"--junitxml={REPORTS / 'browser.xml'}"
    paths = {name: path for name, path in found.items() if path is not None}
    session.run("pytest", "-q", report, "tests/browser", env={**paths, "SCREENSHOTS": str(REPORTS / "browser")})


@nox.session(python=OTHER_PYTHONS, requires=["wheels"])
def pythons(session: nox.Session) -> None:
    """The layers without torch, on every other supported Python that is installed here."""
    light = [package for package in PACKAGES if package != "gpu"]
    install(session, core("testing"), *(PINNED[package] for package in light), groups=("test",))
    folders = [f"packages/{package}/tests" for package in light]
    # Whether the kit catches liars does not depend on the Python; the session «tests» finds out.
    pytest(session, *folders, "--ignore=packages/core/tests/testing", report=f"pythons-{session.python}")


@nox.session(requires=["wheels"])
def kernels(session: nox.Session) -> None:
    """Every Triton kernel compiled for the devices that people have: registers, spills and wide stores, as a table."""
    name, _, version = PINNED["gpu"].partition("==")
    install(session, f"{name}[triton]=={version}", core(), "rich")
    session.run("python", "scripts/compile_kernels.py", *session.posargs)


@nox.session(requires=["wheels"])
def fuzz(session: nox.Session) -> None:
    """Every decoder and reader of files is given bytes that are nearly right, each for a second or two."""
    install(session, core("testing,fast,sb3"), PINNED["recording"], "hypothesis", "rich")
    if OWN_PYTHON == "3.11":  # the version that there are wheels of it for
        session.install("--quiet", "--constraint", str(CONSTRAINTS), "atheris", success_codes=[0, 1])
    session.run("python", "-m", "scripts.fuzz", *(session.posargs or ["--seconds", "1"]))


@nox.session(requires=["wheels"])
def demo(session: nox.Session) -> None:
    """Train from images with a compressed buffer, and show what was learnt and what memory it took."""
    install(session, core("fast,sb3"), groups=("demo",))
    session.run("python", "examples/example_demo.py", *session.posargs)


@nox.session(requires=["wheels"])
def pong(session: nox.Session) -> None:
    """The examples of buffers on a device, in a short form: train from images twice, and watch what was learnt."""
    install(session, core("fast,sb3,atari"), PINNED["gpu"], groups=("demo",))
    for kind in ("replay", "rollout"):
        folder = str(Path(session.create_tmp(), kind))
        device = session.posargs or ["--device", "cpu"]
        session.run("python", f"examples/example_train_gpu_{kind}.py", "--quick", *device, "--save", folder)
        watch = ["--quick", *device, "--load", folder, "--render", "none"]
        session.run("python", f"examples/example_watch_gpu_{kind}.py", *watch)


@nox.session(requires=["wheels"])
def examples(session: nox.Session) -> None:
    """The other examples in a short form, after the tests of what they are made of."""
    exports = PINNED["recording"].replace("==", "[video]==")
    install(session, core("fast,contrib,atari,vizdoom"), exports, groups=("training", "demo"))
    pytest(session, "tests/examples", report="examples")
    out = session.create_tmp()
    evaluations = [["eval_memory_saving", "--out", out], ["eval_memory_loading", "--out", out]]
    doom = ["doom_segmentation", "--plot", str(Path(out, "doom.png")), "--train", "256"]
    for name, *arguments in (*evaluations, doom, ["train_actors", "--kill"]):
        session.run("python", f"examples/example_{name}.py", "--quick", *arguments)


@nox.session(requires=["wheels"])
def learning(session: nox.Session) -> None:
    """The examples that train, evaluate and watch, in a short form, with compressed buffers and with SB3's own."""
    video = PINNED["recording"].replace("==", "[video]==")
    install(session, core("fast,sb3,atari"), video, groups=("demo",))
    folder = Path(session.create_tmp())
    for trainer, algorithm, game in (("replay", "dqn", "MsPacman"), ("rollout", "ppo", "Pong")):
        for buffer in ("sb3", "compressed"):
            short = ["--quick", "--envs", "2", "--game", game, "--buffer", buffer, "--save", str(folder)]
            session.run("python", f"examples/example_train_{trainer}.py", *short)
        model = ["--quick", "--game", game, "--algorithm", algorithm, "--load", str(folder)]
        session.run("python", "examples/example_evaluate.py", *model, "--keep", "2000")
        watched = ["--render", "video", "--video", str(folder / f"{game}.mp4")]
        session.run("python", "examples/example_watch.py", *model, *watched)
    for trainer in ("her", "dict"):
        session.run("python", f"examples/example_train_{trainer}.py", "--quick")
    curves = ["--json", str(folder / "curves.json"), "--plot", str(folder / "curves.svg")]
    session.run("python", "examples/example_learning_curves.py", "--quick", *curves)


@nox.session(requires=["wheels"])
def bench(session: nox.Session) -> None:
    """The benchmarks, in a short form; «nox -s bench -- buffers --game Pong» runs one of them, and takes its time."""
    install(session, core("fast,sb3,atari,vizdoom"), PINNED["gpu"], PINNED["recording"], groups=("demo",))
    short = [[name, "--quick"] for name in ("buffers", "codecs", "gpu", "recordings", "choosing")]
    short += [["frames", "--quick", "--games", "MsPacman"], ["imports"]]
    short += [["cold_reads", "--megabytes", "64", "--times", "3"]]
    chosen = [session.posargs] if session.posargs else short
    for name, *arguments in chosen:
        session.run("python", "-m", f"benchmarks.{name}", *arguments)

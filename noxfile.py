"""The only matrix: every distribution alone, together and in the combinations that people install.

``nox`` runs everything; ``nox -l`` lists the sessions; ``nox -s tests -- -k rle`` passes arguments on to pytest.
Sessions install wheels, never the source tree: what passes here is what users get.
"""

from __future__ import annotations

import os
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
    session.run(
        "pytest", "-q", f"--junitxml={REPORTS / 'wheels.xml'}", "tests/wheels", env={"WHEELHOUSE": str(WHEELHOUSE)}
    )


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
    """The buffer classes beside those of Stable-Baselines3 and sb3-contrib, with every codec that is installed."""
    install(session, core("testing,contrib" + (",fast" if codecs == "fast" else "")), groups=("training",))
    pytest(session, "packages/core/tests/compressed", report=f"buffers-{codecs}")


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
    install(session, core("testing"), OUTSIDER, groups=("test",))
    pytest(session, "examples/plugin-template/tests", "tests/outsider", report="outsider")


@nox.session(requires=["wheels"])
def together(session: nox.Session) -> None:
    """Everything in one environment: what needs several distributions, and the documents."""
    install(session, core("testing,contrib"), *PINNED.values(), OUTSIDER, groups=("training",))
    pytest(session, "tests/together", report="together")


@nox.session(python=["3.10", "3.11", "3.12", "3.13"], requires=["wheels"])
def pythons(session: nox.Session) -> None:
    """The layers without torch, on every supported Python that is installed here."""
    install(session, core("testing"), *PINNED.values(), groups=("test",))
    folders = [f"packages/{package}/tests" for package in PACKAGES]
    # Whether the kit catches liars does not depend on the Python; the session «tests» finds out.
    pytest(session, *folders, "--ignore=packages/core/tests/testing", report=f"pythons-{session.python}")


@nox.session(requires=["wheels"])
def demo(session: nox.Session) -> None:
    """Train from images with a compressed buffer, and show what was learnt and what memory it took."""
    install(session, core("fast,sb3"), groups=("demo",))
    session.run("python", "-m", "examples.demo", *session.posargs)


@nox.session(requires=["wheels"])
def bench(session: nox.Session) -> None:
    """The benchmarks, in a short form; «nox -s bench -- buffers --game Pong» runs one of them, and takes its time."""
    install(session, core("fast,sb3,atari"), groups=("demo",))
    short = [["buffers", "--quick"], ["frames", "--quick", "--games", "MsPacman"], ["codecs", "--quick"], ["imports"]]
    chosen = [session.posargs] if session.posargs else short
    for name, *arguments in chosen:
        session.run("python", "-m", f"benchmarks.{name}", *arguments)

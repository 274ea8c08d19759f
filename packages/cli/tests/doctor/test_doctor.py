"""The doctor lists everything, loads everything and explains what is broken."""

import json
import os
import subprocess
import sys

from sb3_extra_buffers import codecs, doctor
from sb3_extra_buffers.doctor import examine, render
from sb3_extra_buffers.errors.install import install_command

BROKEN = "raise OSError('libfoo.so.3 is missing')"


def run(*args):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "sb3_extra_buffers.doctor", *args]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1800)


def test_everything_that_is_built_in_works_and_names_its_distribution():
    findings = {(finding.kind, finding.name): finding for finding in examine().findings}
    built_in = {
        "core": [("codec", "none"), ("codec", "rle"), ("codec", "gzip"), ("heap", "memory"), ("heap", "ring")],
        "heap-mmap": [("heap", "mmap")],
        "storage": [("frame kernels", "numpy")],
    }
    for part, keys in built_in.items():
        for key in keys:
            assert findings[key].works
            assert findings[key].distribution.startswith(f"sb3-extra-buffers-{part} ")
    assert findings["codec", "gzip"].levels == "0 to 9"


def test_the_command_prints_versions_and_plugins():
    done = run()
    assert done.returncode == 0, done.stderr
    assert "numpy" in done.stdout
    assert "codec          rle " in done.stdout
    assert "plugins work." in done.stdout


def test_a_broken_plugin_is_shown_with_its_cause_and_the_others_still_work(install):
    install("bad-dist", "bad", "fake_bad", BROKEN)
    report = examine()
    assert not report.healthy
    assert [finding.name for finding in report.findings if not finding.works] == ["bad"]
    assert "BROKEN codec 'bad'" in render(report)
    done = run("--json")
    assert done.returncode == 1
    found = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert "OSError: libfoo.so.3 is missing" in found["bad"]["detail"]
    assert found["bad"]["distribution"] == "bad-dist 1.0"
    assert found["rle"]["works"]


def test_it_is_one_command_with_one_name():
    shown = run("--help")
    assert shown.returncode == 0, shown.stderr
    assert "Usage: sb3-buffers doctor" in shown.stdout
    assert "python -m" not in shown.stdout
    assert "python -m" not in (doctor.__doc__ or "")
    assert run("--unknown").returncode == 2


def test_what_is_not_installed_is_listed_with_the_command_that_installs_it(monkeypatch):
    there = {name: offers for name, offers in codecs.registry.offers().items() if name != "zstd"}
    monkeypatch.setattr(codecs.registry, "_offers", there)
    report = examine()
    command = install_command("sb3-extra-buffers-codec-zstd")
    assert report.missing["zstd"] == command
    assert f"not installed: zstd: {command}" in render(report).splitlines()
    assert report.healthy  # missing optional plugins are not a fault


def test_two_distributions_with_one_name_are_shown_as_such(install):
    for number in "12":
        install(f"dist-{number}", "twin", f"fake_twin{number}", "")
    assert "dist-1 1.0 and by dist-2 1.0" in render(examine())


def test_a_codec_that_loads_but_does_not_work_is_shown_as_broken(install):
    source = """
        from sb3_extra_buffers.codecs import CodecPlugin, hookimpl

        @hookimpl
        def sb3_extra_buffers_codec():
            return CodecPlugin(protocol=1, factory={factory}, summary="Loads")
    """
    install("odd-dist", "odd", "fake_odd1", source.format(factory="lambda spec, cell: object()"))
    install("bad-dist", "bad", "fake_bad1", source.format(factory="lambda spec, cell: 1 / 0"))
    found = {finding.name: finding for finding in examine().findings if not finding.works}
    assert set(found) == {"bad", "odd"}
    assert "without cell, decode_into" in found["odd"].detail
    assert "raised ZeroDivisionError: division by zero" in found["bad"].detail

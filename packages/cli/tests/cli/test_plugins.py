"""Listing reads metadata; trying imports."""

import json
import subprocess
import sys

from sb3_extra_buffers import codecs, heaps
from sb3_extra_buffers.errors.install import install_command


def test_every_codec_is_listed_with_its_distribution(run):
    out, _, code = run("codecs")
    assert code == 0
    for name in codecs.names():
        assert any(line.split()[:2][0] == name for line in out.splitlines() if line.strip())
    assert "sb3-extra-buffers-core 1" in out
    assert "--load tries each of them" in out


def test_what_is_not_installed_says_how_to_get_it(run, monkeypatch):
    monkeypatch.setattr(codecs.registry, "names", lambda: ("gzip", "none", "rle"))
    out, _, _ = run("codecs")
    assert f"not installed: {install_command('sb3-extra-buffers-codec-zstd')}" in out


def test_listing_imports_no_plugin():
    code = (
        "import sys\nfrom sb3_extra_buffers.cli import main\n"
        "try:\n    main(['codecs'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print([name for name in sys.modules if name.startswith(('sb3_extra_buffers_codec', 'numba', 'torch'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1800)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_what_nobody_has_tried_is_not_said_to_work(run):
    assert {row["works"] for row in json.loads(run("codecs", "--json")[0]) if row["distribution"]} == {None}


def test_trying_tells_levels(run):
    out, _, code = run("codecs", "--load", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert rows["gzip"]["levels"] == "0 to 9"
    assert rows["gzip"]["status"].startswith("ok: ")


def test_heaps_are_listed_too(run):
    out, _, code = run("heaps", "--load")
    assert code == 0
    for name in heaps.names():
        assert name in out
    assert "levels" not in out


def test_a_broken_plugin_is_shown_with_its_cause(run, install):
    install("bad-dist", "bad", "fake_bad", "raise OSError('libfoo.so.3 is missing')")
    assert run("codecs")[2] == 0  # nobody has looked yet
    out, _, code = run("codecs", "--load")
    assert code == 1
    assert "BROKEN: " in out
    assert "libfoo.so.3 is missing" in out


def test_a_name_that_two_offer_is_shown(run, install):
    for number in "12":
        install(f"dist-{number}", "twin", f"fake_twin{number}", "")
    assert "offered twice" in run("codecs")[0]


def test_the_doctor_tries_everything(run):
    out, _, code = run("doctor")
    assert code == 0
    assert "plugins work." in out
    findings = json.loads(run("doctor", "--json")[0])["findings"]
    assert all(finding["works"] for finding in findings)


def test_the_doctor_says_what_is_broken(run, install):
    install("bad-dist", "bad", "fake_bad", "raise OSError('libfoo.so.3 is missing')")
    out, _, code = run("doctor")
    assert code == 1
    assert "BROKEN codec 'bad'" in out

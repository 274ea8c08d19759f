"""The kit is held to its word: it passes what is honest and says exactly what each liar breaks."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lying_codecs import LIARS, Honest, LeaksNativeMemory
from verdict import broken_rules

from sb3_extra_buffers.testing import CODEC_RULES, BrokenRule, CodecSubject, freeze
from sb3_extra_buffers.testing.freeze import read_golden

IN_A_FRESH_PROCESS = """
from lying_codecs import LeaksNativeMemory
from verdict import broken_rules
from sb3_extra_buffers.testing import CODEC_RULES, CodecSubject
print(broken_rules(CODEC_RULES, CodecSubject("liar", LeaksNativeMemory.plugin(), module="json")))
"""


@pytest.mark.parametrize(
    "liar", [liar for liar in LIARS if liar is not LeaksNativeMemory], ids=lambda liar: liar.__name__
)
def test_each_liar_breaks_exactly_the_rules_that_it_names(liar):
    # The module is named so that the rule about pickling applies; these codecs pickle as plain objects.
    subject = CodecSubject("liar", liar.plugin(), module="json")
    assert broken_rules(CODEC_RULES, subject) == liar.breaks


def test_memory_that_leaks_outside_of_python_is_noticed():
    # In this process, other tests have left free memory behind, which such a leak would fill without being seen.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", IN_A_FRESH_PROCESS]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == str({"codec-leaks"}), done.stderr


def test_every_rule_is_broken_by_somebody():
    by_other_means = {"golden", "light-import", "parameters"}  # the tests below
    assert set().union(*(liar.breaks for liar in LIARS)) | by_other_means == {rule.id for rule in CODEC_RULES}


def test_a_plugin_that_imports_torch_is_caught_although_it_hides_it(tmp_path, monkeypatch):
    (tmp_path / "fake_heavy.py").write_text("try:\n    import torch\nexcept ImportError:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    subject = CodecSubject("liar", Honest.plugin(), module="fake_heavy")
    with pytest.raises(BrokenRule, match="importing fake_heavy asked for torch"):
        CODEC_RULES["light-import"].verify(subject)


def test_a_plugin_that_takes_any_parameter_is_caught():
    class Lax(type(Honest.plugin())):
        def complete(self, spec):
            return spec

    lax = Lax(protocol=1, factory=Honest, summary="Takes anything")
    with pytest.raises(BrokenRule, match="an unknown parameter: expected ParameterError, but nothing was raised"):
        CODEC_RULES["parameters"].verify(CodecSubject("liar", lax))


@pytest.fixture
def frozen(tmp_path):
    """Payloads of the honest codec, with the standard cells."""
    entries = json.loads((Path(__file__).parent.parent / "codecs" / "golden" / "none.json").read_text())
    path = tmp_path / "frozen.json"
    path.write_text(json.dumps(entries))
    return path


def test_frozen_payloads_are_decoded_and_where_asked_encoded(frozen):
    subject = CodecSubject.installed("none", golden=frozen, frozen_encoding=True)
    CODEC_RULES["golden"].verify(subject)
    first, second = json.loads(frozen.read_text())[4:6]
    frozen.write_text(json.dumps([{**first, "payload": second["payload"]}]))
    with pytest.raises(BrokenRule, match=r"the frozen payload decodes wrongly|PayloadError"):
        CODEC_RULES["golden"].verify(subject)


def test_another_encoding_is_only_a_fault_where_it_was_promised(frozen):
    entries = [entry for entry in json.loads(frozen.read_text()) if "70000" in entry["title"]]
    other = CodecSubject.installed("rle", golden=frozen)
    frozen.write_text(json.dumps([{**entry, "spec": {"name": "rle", "params": {}}} for entry in entries]))
    CODEC_RULES["golden"].verify(other)  # a raw payload is one that rle reads, but would not write
    with pytest.raises(BrokenRule, match="encoded to another payload"):
        CODEC_RULES["golden"].verify(dataclasses.replace(other, frozen_encoding=True))


def test_a_missing_or_empty_file_of_frozen_payloads_fails(frozen):
    subject = CodecSubject.installed("none", golden=frozen)
    frozen.write_text("[]")
    with pytest.raises(BrokenRule, match="holds no payload"):
        CODEC_RULES["golden"].verify(subject)
    frozen.unlink()
    with pytest.raises(BrokenRule, match="is missing; freeze the payloads once with: python -m"):
        CODEC_RULES["golden"].verify(subject)
    assert not frozen.exists()


def test_the_command_that_freezes_runs_without_a_warning(tmp_path):
    path = tmp_path / "rle.json"
    command = ["-W", "error::RuntimeWarning", "-m", "sb3_extra_buffers.testing.freeze", "rle", str(path)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(read_golden(path)) == 32


def test_freezing_never_replaces_a_file_unless_told_to(tmp_path, capsys, monkeypatch):
    path = tmp_path / "new" / "rle.json"
    monkeypatch.setattr(sys, "argv", ["freeze", "rle", str(path)])
    freeze.main()
    assert "32 payloads of rle" in capsys.readouterr().out
    assert len(read_golden(path)) == 32
    with pytest.raises(SystemExit):
        freeze.main()
    assert "only with --replace" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["freeze", "rle", str(path), "--replace"])
    freeze.main()

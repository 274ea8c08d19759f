"""What the documents say is what the code does."""

import ast
import contextlib
import doctest
import re
import subprocess
import sys
import traceback
import types
from pathlib import Path

import pytest

from sb3_extra_buffers import codecs, errors
from sb3_extra_buffers.registry.registry import unknown_name
from sb3_extra_buffers.testing import CODEC_RULES, HEAP_RULES, HeapSubject, NotApplicable
from scripts.draw_pictures import IMAGES, PICTURES

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted(path for path in ROOT.glob("docs/**/*.md") if "_build" not in path.parts),
    *sorted(ROOT.glob("packages/*/README.md")),
    ROOT / "examples/README.md",
    ROOT / "examples/plugin-template/README.md",
    ROOT / "examples/heap-template/README.md",
]


def table(page, marker):
    text = (ROOT / "docs" / page).read_text()
    rows = text.split(f"<!-- {marker}:begin -->")[1].split(f"<!-- {marker}:end -->")[0].strip().splitlines()[2:]
    return [tuple(cell.strip().strip("`") for cell in row.strip("|").split("|")) for row in rows]


@pytest.mark.parametrize(
    ("page", "marker", "rules"),
    [("write-a-codec.md", "codec-rules", CODEC_RULES), ("write-a-heap.md", "heap-rules", HEAP_RULES)],
    ids=["codecs", "heaps"],
)
def test_the_tables_of_rules_are_the_rules(page, marker, rules):
    assert table(page, marker) == [(rule.id, rule.sentence) for rule in rules]


def test_ci_runs_the_command_that_the_readme_prints():
    command = "python -m pip install -c constraints.txt nox && python -m nox"
    assert f"\n{command}\n" in (ROOT / "README.md").read_text()
    assert f"\n{command} -t default full\n" in (ROOT / ".ci" / "run").read_text()


def test_every_nox_session_has_one_tag_and_plain_nox_runs_the_default_ones():
    decorators = [
        [one.func.id for one in node.decorator_list if isinstance(one.func, ast.Name)]
        for node in ast.parse((ROOT / "noxfile.py").read_text()).body
        if isinstance(node, ast.FunctionDef) and node.decorator_list
    ]
    assert {"default", "full"} == {name for names in decorators for name in names}
    assert [names for names in decorators if len(names) != 1] == []
    listed = subprocess.run([sys.executable, "-m", "nox", "-l"], cwd=ROOT, capture_output=True, text=True, check=True)
    sessions = re.findall(r"^([*-]) \S+ \[(\w+)\]", listed.stdout, re.MULTILINE)
    assert len(sessions) >= len(decorators)
    assert {(mark, tag) for mark, tag in sessions} == {("*", "default"), ("-", "full")}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(document):
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", document.read_text())
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_blocks_run_as_printed(document, tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE)
    if not blocks:
        pytest.skip("no Python in this document")
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "__main__", "__file__": str(tmp_path / "pasted.py")}
    for block in blocks:  # one after the other, in one scope, as a reader would paste them
        exec(compile(block, str(document), "exec"), scope)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_sessions_print_what_the_document_shows(document, tmp_path, monkeypatch):
    sessions = re.findall(r"^```pycon\n(.*?)^```", document.read_text(), re.DOTALL | re.MULTILINE)
    test = doctest.DocTestParser().get_doctest("\n".join(sessions), {}, document.name, str(document), 0)
    if not test.examples:
        pytest.skip("no session in this document")
    monkeypatch.chdir(tmp_path)
    differences = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False).run(test, out=differences.append)
    assert not differences, "".join(differences)


def test_errors_that_are_quoted_say_so_still(tmp_path, monkeypatch):
    for name in ("sb3-extra-buffers-core", "sb3-extra-buffers"):  # as installed from an index, for the hints
        info = tmp_path / f"{name.replace('-', '_')}-1.0.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    quoted = re.findall(r"^```pycon\n((?!>>>).+)\n```$\n\n<!-- raised by: (.+) -->$", text, re.MULTILINE)
    assert len(quoted) == text.count("<!-- raised by:") > 0
    scope = {**vars(errors), "codecs": codecs, "unknown_name": unknown_name}
    for shown, made_by in quoted:
        error = eval(made_by, scope)
        assert traceback.format_exception_only(type(error), error)[-1].strip() == shown


def test_every_error_is_on_the_page_of_troubles():
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    every = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    kinds = [kind for kind in every if not kind.__subclasses__()]
    assert [kind.__name__ for kind in kinds if f"{kind.__name__}: " not in text] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_shell_blocks_can_be_parsed(document):
    for block in re.findall(r"^ *```(?:sh|bash)\n(.*?)^ *```", document.read_text(), re.DOTALL | re.MULTILINE):
        parsed = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True)
        assert parsed.stderr == ""


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_are_what_the_script_draws(name):
    assert (IMAGES / name).read_text(encoding="utf-8") == PICTURES[name]()


def test_the_codec_in_the_tutorial_is_the_template():
    template = (ROOT / "examples/plugin-template/src/sb3_extra_buffers_codec_bz2/bz2.py").read_text()
    assert f"```python\n{template}```" in (ROOT / "docs" / "write-a-codec.md").read_text()


def test_the_heap_in_the_tutorial_is_the_template():
    template = (ROOT / "examples/heap-template/src/sb3_extra_buffers_heap_fifo/fifo.py").read_text()
    assert f"```python\n{template}```" in (ROOT / "docs" / "write-a-heap.md").read_text()


def test_the_heap_in_the_tutorial_keeps_every_rule(monkeypatch):
    text = (ROOT / "docs" / "write-a-heap.md").read_text()
    source = next(
        block for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if "FifoHeap" in block
    )
    module = types.ModuleType("heap_from_the_tutorial")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # so that it pickles
    exec(source, vars(module))
    subject = HeapSubject("fifo", module.sb3_extra_buffers_heap(), {"capacity": 1 << 22})
    for rule in HEAP_RULES:
        with contextlib.suppress(NotApplicable):
            rule.verify(subject)

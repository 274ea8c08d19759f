"""``bench`` runs what a checkout has."""

import pytest


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with one benchmark."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (tmp_path / "noxfile.py").touch()
    (folder / "__init__.py").touch()
    (folder / "tools.py").write_text('"""Only tools."""\n')
    script = '"""How fast is it?"""\nimport pathlib, sys\n\nif __name__ == "__main__":\n'
    script += '    pathlib.Path("ran").write_text(" ".join(sys.argv[1:]))\n    sys.exit(3)\n'
    (folder / "speed.py").write_text(script)
    monkeypatch.chdir(folder)
    return tmp_path


def test_what_can_be_run_is_listed(run, checkout):
    out, _, code = run("bench")
    assert code == 0
    assert "speed" in out
    assert "How fast is it?" in out
    assert "tools" not in out


def test_options_are_handed_on_and_the_exit_code_comes_back(run, checkout):
    _, _, code = run("bench", "speed", "--quick", "-n", "5")
    assert code == 3
    assert (checkout / "ran").read_text() == "--quick -n 5"


def test_another_name_is_refused(run, checkout):
    _, err, code = run("bench", "tools")
    assert code == 2
    assert "'tools' is not allowed; it must be one of: speed" in err


def test_outside_of_a_checkout_it_says_what_it_needs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, err, code = run("bench")
    assert code == 2
    assert f"{tmp_path}: expected a checkout of sb3-extra-buffers, whose folder benchmarks has what bench runs" in err
    assert "found no checkout here or above. Change to a checkout of the repository and run it there" in err
    assert "not allowed" not in err

"""The script that fits the ratios: from a table of sizes to constants, and never by hand."""

import ast
import importlib.util
import json
import math
from pathlib import Path

import numpy as np
import pytest

from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import UnknownPluginError
from sb3_extra_buffers.gpu_buffers import size_ratios
from sb3_extra_buffers.gpu_buffers.size_estimation import estimate_save_ratio

#: What no codec makes of anything.
_NO_RATIOS = (0, -1.5, math.inf, math.nan, None, "4", True)
_SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "fit_heap_heuristic.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("fit_heap_heuristic", _SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table_of(sizes: dict[str, float], game: str = "MsPacman", order: str = "hwc") -> dict:
    figures = [{"codec": name, "ratio": ratio, "microseconds_per_cell": {}} for name, ratio in sizes.items()]
    return {"settings": {"frames": 256}, "tables": [{"game": game, "order": order, "figures": figures}]}


def fits_in(text: str) -> dict:
    """The constants of a module that was written, without importing it."""
    return next(ast.literal_eval(node.value) for node in ast.parse(text).body if isinstance(node, ast.AnnAssign))


def assert_one_line(capsys, message: str) -> None:
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err


def run(script, *arguments: object) -> int:
    return script.main([str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "sizes.json"
    file.write_text(json.dumps(table_of({"none": 1.0, "rle": 4.0, "zstd/1": 10.0, "zstd/3": 20.0})), encoding="utf-8")
    return file


def test_the_committed_constants_are_what_the_committed_table_gives(script, capsys):
    assert run(script, "--check") == 0
    assert capsys.readouterr().out == ""
    assert fits_in(script.DEFAULT_OUTPUT.read_text(encoding="utf-8")) == size_ratios.FITS


def test_the_committed_table_has_every_codec_at_every_level_but_far_below_zero(script):
    content = json.loads(script.DEFAULT_TABLE.read_text(encoding="utf-8"))
    for order in ("hwc", "chw"):
        figures = script.figures_of(content, "MsPacman", order)
        assert figures.keys() == script.PIECES.keys() == size_ratios.FITS.keys()
        for name, pieces in script.PIECES.items():
            wanted = {level for low, high in pieces for level in range(max(low, -5), high + 1)}
            assert wanted <= figures[name].keys()


def test_estimates_follow_the_committed_table(script):
    content = json.loads(script.DEFAULT_TABLE.read_text(encoding="utf-8"))
    compared = 0
    for name, measured in script.figures_of(content, "MsPacman", "hwc").items():
        for level, ratio in measured.items():
            method = name if script.PIECES[name] == ((0, 0),) else f"{name}/{level}"
            assert estimate_save_ratio(method) == pytest.approx(ratio, rel=0.12), method
            compared += 1
    assert compared > 100


def test_a_table_of_the_benchmark_becomes_constants(script, table, tmp_path):
    output = tmp_path / "ratios.py"
    assert run(script, "--table", table, "--output", output) == 0
    text = output.read_text(encoding="utf-8")
    assert "Written by scripts/fit_heap_heuristic.py" in text
    assert "From sizes.json: 256 observations of MsPacman" in text
    fits = fits_in(text)
    assert fits["rle"] == ((0, 0, (0.25,), 0.25, 0.25),)
    low, high, coefficients, smallest, largest = fits["zstd"][0]
    assert (low, high, smallest, largest) == (1, 22, 0.05, 0.1)
    # A line through the two points, in the logarithm: log2(1 + 1) = 1, log2(1 + 3) = 2.
    assert coefficients == pytest.approx((0.15, -0.05))
    assert len(fits["zstd"]) == 1
    assert fits.keys() == {"none", "rle", "zstd"}


def test_a_check_tells_whether_the_output_is_up_to_date_and_writes_nothing(script, table, tmp_path, capsys):
    output = tmp_path / "ratios.py"
    assert run(script, "--table", table, "--output", output, "--check") == 1
    assert not output.exists()
    run(script, "--table", table, "--output", output)
    assert run(script, "--table", table, "--output", output, "--check") == 0
    edited = output.read_text(encoding="utf-8").replace("0.25", "0.2")
    output.write_text(edited, encoding="utf-8")
    capsys.readouterr()
    assert run(script, "--table", table, "--output", output, "--check") == 1
    assert "ratios.py is not what sizes.json gives" in capsys.readouterr().out
    assert output.read_text(encoding="utf-8") == edited


def test_a_cubic_in_the_logarithm_is_found_again(script):
    truth = (0.1, 0.02, -0.004, 0.0005)
    levels = range(1, 23)
    ratios = {level: sum(c * math.log2(1 + level) ** power for power, c in enumerate(truth)) for level in levels}
    low, high, coefficients, smallest, largest = script.fitted({"zstd": ratios})["zstd"][0]
    assert (low, high) == (1, 22)
    np.testing.assert_allclose(coefficients, truth, rtol=1e-4)
    assert (smallest, largest) == pytest.approx((min(ratios.values()), max(ratios.values())), rel=1e-5)


def test_jumps_between_the_modes_of_a_codec_are_kept(script):
    fits = script.fitted({"gzip": {0: 1.0, 1: 0.1, 9: 0.05}})["gzip"]
    assert fits[0] == (0, 0, (1.0,), 1.0, 1.0)
    assert fits[1][:2] == (1, 9)
    assert fits[1][4] == 0.1


def test_other_codecs_and_variants_are_left_out(script):
    sizes = {"rle": 4.0, "bz2/9": 30.0, "somebodys-codec": 2.0, "zstd/3(checksum=True)": 19.0}
    assert script.figures_of(table_of(sizes), "MsPacman", "hwc") == {"rle": {0: 0.25}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (json.dumps(table_of({"rle": 4.0}, game="Pong")), "exactly once; it has: Pong hwc"),
        (json.dumps(table_of({"rle": 4.0}, order="chw")), "exactly once; it has: MsPacman chw"),
        (json.dumps({"tables": []}), "it has: none"),
        ("{", "Expecting property name"),
        ("[]", "a table must look like"),
        ("7", "a table must look like"),
        (json.dumps({"tables": 7}), "a table must look like"),
        (json.dumps({"tables": [7]}), "a table must look like"),
        (json.dumps({"tables": [{"game": "MsPacman", "order": "hwc"}]}), "a table must look like"),
        (json.dumps({"tables": [{"game": "MsPacman", "order": "hwc", "figures": 7}]}), "no list"),
        (json.dumps({"tables": [{"game": "MsPacman", "order": "hwc", "figures": [7]}]}), "found: 7"),
        (json.dumps(table_of({})), "has no figure of these codecs"),
        (json.dumps(table_of({"bz2/9": 30.0, "zstd/3(checksum=True)": 19.0})), "has no figure of these codecs"),
        (json.dumps(table_of({"zstd/0": 3.0})), "has no figure of these codecs at their levels"),
        *((json.dumps(table_of({"rle": bad})), "a finite ratio above 0") for bad in _NO_RATIOS),
    ],
)
@pytest.mark.parametrize("options", [(), ("--check",)], ids=["write", "check"])
def test_a_table_that_does_not_serve_is_refused_in_a_line_and_nothing_is_written(
    script, tmp_path, content, message, options, capsys
):
    table, output = tmp_path / "sizes.json", tmp_path / "ratios.py"
    table.write_text(content, encoding="utf-8")
    output.write_text("as it was", encoding="utf-8")
    assert run(script, "--table", table, "--output", output, *options) == 2
    assert_one_line(capsys, message)
    assert output.read_text(encoding="utf-8") == "as it was"


def test_a_file_that_cannot_be_read_or_written_is_named(script, table, tmp_path, capsys):
    assert run(script, "--table", tmp_path / "nowhere.json", "--output", tmp_path / "ratios.py") == 2
    assert_one_line(capsys, "nowhere.json")
    assert run(script, "--table", table, "--output", tmp_path / "nowhere" / "ratios.py") == 2
    assert_one_line(capsys, "nowhere")


def test_measuring_and_checking_at_once_is_refused(script, tmp_path, capsys):
    assert run(script, "--check", "--measure", "--table", tmp_path / "sizes.json") == 2
    assert_one_line(capsys, "leave --measure out")


def test_what_is_measured_and_does_not_serve_replaces_no_table(script, table, tmp_path, monkeypatch, capsys):
    before, output = table.read_text(encoding="utf-8"), tmp_path / "ratios.py"
    monkeypatch.setattr(script, "measure", lambda game, frames: table_of({}, game))
    assert run(script, "--measure", "--table", table, "--output", output) == 2
    assert_one_line(capsys, "has no figure")
    assert table.read_text(encoding="utf-8") == before
    assert not output.exists()


def test_a_name_without_a_level_stands_for_the_default_of_the_codec(script):
    default = codecs.registry.load("gzip").levels.default
    assert default != 0
    assert script.figures_of(table_of({"gzip": 16.0}), "MsPacman", "hwc") == {"gzip": {default: 1 / 16}}


def test_a_name_without_a_level_of_a_codec_that_is_absent_is_refused(script, tmp_path, monkeypatch, capsys):
    def load(name):
        raise UnknownPluginError("codec", name, ("gzip",))

    monkeypatch.setattr(codecs.registry, "load", load)
    table, output = tmp_path / "sizes.json", tmp_path / "ratios.py"
    table.write_text(json.dumps(table_of({"zstd/3": 20.0, "zstd": 20.0})), encoding="utf-8")
    assert run(script, "--table", table, "--output", output) == 2
    assert_one_line(capsys, "zstd")
    assert not output.exists()


def test_what_is_measured_is_written_as_a_table_that_is_read_back(script, tmp_path, monkeypatch):
    rows = {"none": 1.0, "zstd/-3": 11.125, "zstd/3": 17.5}
    monkeypatch.setattr(
        script, "measure", lambda game, frames: {**table_of(rows, game), "settings": {"frames": frames}}
    )
    table, output = tmp_path / "sizes.json", tmp_path / "ratios.py"
    assert run(script, "--measure", "--table", table, "--output", output, "--game", "Pong", "--frames", "5") == 0
    text = table.read_text(encoding="utf-8")
    assert '\n        {"codec": "zstd/-3", "ratio": 11.125,' in text
    assert json.loads(text) == {**table_of(rows, "Pong"), "settings": {"frames": 5}}
    assert "5 observations of Pong" in output.read_text(encoding="utf-8")


def test_sizes_are_those_of_the_payloads(script):
    row = np.repeat(np.arange(10, dtype=np.uint8), 100)
    rows = np.stack([row, row])
    # Each of the ten runs takes an end of two bytes and a value.
    assert script._times_smaller(script.CodecSpec("rle"), rows) == round(1000 / 30, 3)
    assert script._times_smaller(script.CodecSpec("none"), rows) == 1


def test_every_level_that_is_measured_lies_in_a_range_that_is_fitted(script):
    specs = list(script._specs())
    assert len(specs) == len(set(specs)) > 100
    for spec in specs:
        assert any(low <= spec.params.get("level", 0) <= high for low, high in script.PIECES[spec.name])

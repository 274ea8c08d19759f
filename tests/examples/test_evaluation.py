"""Figures of the evaluations: rounded for readers, marked where they are extrapolated, unrounded in the CSV."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from benchmarks._lib.measure import Stopwatch
from examples._lib.contenders import Filling, Saving
from examples._lib.evaluation import Evaluation, Figures, finish, number, share, write_csv
from examples.example_eval_memory_saving import _figures, _unrounded

BENCHMARKS = Path(__file__).parents[2] / "docs" / "benchmarks"


@pytest.mark.parametrize(
    ("value", "text"), [(1129.9, "1,130"), (98.66, "98.7"), (5.943, "5.94"), (0.443, "0.44"), (0.0312, "0.031")]
)
def test_numbers_have_three_digits_at_most_behind_what_matters(value: float, text: str) -> None:
    assert number(value, is_measured=True) == text
    assert number(value, is_measured=False) == f"≈ {text}"


def test_small_shares_keep_a_digit_more() -> None:
    assert share(59.4, 1000, is_measured=True) == "5.9%"
    assert share(5.94, 1000, is_measured=True) == "0.59%"
    assert share(5.94, 1000, is_measured=False) == "≈ 0.59%"


def test_markdown_is_a_table_with_names_as_code() -> None:
    figures = Figures(("buffer", "MB"), [("SB3", "1,130"), ("zstd-5", "98.7")])
    assert figures.as_markdown() == "| buffer | MB |\n| --- | ---: |\n| `SB3` | 1,130 |\n| `zstd-5` | 98.7 |\n"


def test_the_csv_has_every_figure_as_it_was_measured(tmp_path: Path) -> None:
    rows = [{"buffer": "SB3", "seconds": 0.1 + 0.2}, {"buffer": "zstd-5", "seconds": 1e-7}]
    write_csv(tmp_path / "figures.csv", rows)
    with (tmp_path / "figures.csv").open(newline="", encoding="utf-8") as lines:
        read = [{"buffer": row["buffer"], "seconds": float(row["seconds"])} for row in csv.DictReader(lines)]
    assert read == rows


def test_the_document_says_what_was_extrapolated_left_out_and_broken(tmp_path: Path) -> None:
    time = Stopwatch(2.0, 1.0)
    results = [
        Saving("SB3", Filling(100, 100, 80, time, 28.0), 320, 9100, {32: time}),
        Saving("zstd22", Filling(25, 100, 80, time, 10.0), 100, 6000, {32: time}),
    ]
    evaluation = Evaluation(results, ["igzip1"], {"rle": "WrongBytesError: other bytes"})
    file = tmp_path / "memory-saving.csv"
    finish("examples/x.py", ["--quick"], file, "Title", evaluation, Figures(("buffer",), [("SB3",)]), "Note.")
    text = file.with_suffix(".md").read_text(encoding="utf-8")
    for part in ("Title.", "zstd22 25%", "igzip1", "rle failed: WrongBytesError", "`python examples/x.py --quick`"):
        assert part in text
    assert results[1].full_cpu == 4
    assert results[1].full_resident == pytest.approx(6000 + 100 * (10 + 50) * (80 / 25 - 1))


def test_memory_is_not_extrapolated_from_the_beginning_alone() -> None:
    time = Stopwatch(2.0, 1.0)
    assert Saving("zstd22", Filling(10, 100, 80, time, 10.0), 40, 6000, {32: time}).full_resident is not None
    assert Saving("zstd22", Filling(9, 100, 80, time, 10.0), 36, 6000, {32: time}).full_resident is None


def test_the_page_says_what_the_script_makes_of_the_figures() -> None:
    page = (BENCHMARKS / "memory.md").read_text(encoding="utf-8")
    shown = {cells[1].strip("` "): [cell.strip() for cell in cells[2:-1]] for cells in _rows(page, "| `")}
    results = [_saving(row) for row in _published()]
    for name, *cells in _figures(Evaluation(results, [], {})).rows:
        assert shown[name] == cells
    said = {name: int(size.replace(",", "")) for name, size in re.findall(r"`(\S+)`\s+([\d,]+) bytes", page)}
    extrapolated = [result for result in results if not result.filling.is_complete and result.filling.is_telling]
    assert said == {result.name: round(result.filling.growth) for result in extrapolated}


def test_the_csv_has_all_that_memory_is_extrapolated_by() -> None:
    for row in _published():
        result = _saving(row)
        found = {name: str(value) for name, value in _unrounded(result).items()}
        assert list(found) == list(row)
        assert row["growth_bytes"] or result.filling.is_complete or not result.filling.is_telling
        assert {**found, "growth_bytes": row["growth_bytes"]} == row


def _published() -> list[dict[str, str]]:
    with (BENCHMARKS / "memory-saving.csv").open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _rows(page: str, beginning: str) -> list[list[str]]:
    saving = page.partition("## Loading")[0]
    return [line.split("|") for line in saving.splitlines() if line.startswith(beginning)]


def _saving(row: dict[str, str]) -> Saving:
    """What was measured, as far as the file tells: 10,000 rows of four environments."""
    added, planned = (int(row[f"transitions_{part}"]) for part in ("added", "planned"))
    time = Stopwatch(float(row["add_seconds"]), float(row["add_cpu_seconds"]))
    samples = {
        size: Stopwatch(float(row[f"sample_{size}_seconds"]), float(row[f"sample_{size}_cpu_seconds"]))
        for size in (32, 256)
    }
    filling = Filling(added // 4, planned // 4, 10_000, time, float(row["growth_bytes"] or 0))
    return Saving(row["buffer"], filling, min(added, 40_000), int(row["resident_bytes"]), samples)

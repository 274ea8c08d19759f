"""A picture says what the figures say."""

import pytest

from sb3_extra_buffers.advisor import advise, draw
from sb3_extra_buffers.advisor.advice import cost_s, decide
from sb3_extra_buffers.advisor.measurement import PLAIN, Candidate, Measured

pytest.importorskip("matplotlib")
from matplotlib.colors import to_hex

from sb3_extra_buffers.advisor.plot import picture

FEW = {"rounds": 2, "batch_size": 8, "progress": False}
BLUE, RED, PURPLE, GRAY, GREEN = "#4c72b0", "#c44e52", "#8172b3", "#888888", "#2a9d5c"


def way(name, codec, nbytes, micros):
    return Measured(Candidate(name), {"": codec} if codec else {}, 0.0, nbytes, micros * 1e-6, 0.0)


def figures(*ways, prefer="speed"):
    """What advice on these would be as JSON, as far as a picture needs it."""
    verdict = decide(ways, 1, prefer)
    measured = [
        {
            "name": one.candidate.name,
            "stored_as": one.stored_as,
            "nbytes": one.nbytes(1),
            "cost_to_sb3": cost_s(one) / cost_s(ways[0]),
            "on_pareto_front": one in verdict.front,
        }
        for one in sorted(ways, key=lambda one: one.nbytes(1))
    ]
    return {
        "stream": {"label": "made up"},
        "planned_transitions": 1,
        "batch_size": 32,
        "recommended": verdict.chosen.candidate.name,
        "measured": measured,
    }


SB3 = way(PLAIN, "", 1000, 10)
WAYS = (SB3, way("auto", "frames (1 x 9; numba)", 40, 12), way("cells rle", "rle", 90, 8), way("s", "rle", 9, 80))


def points(axes):
    """The points of a picture by their names."""
    return {drawn.get_label().split("  ")[1].partition(",")[0]: drawn for drawn in axes.collections}


def test_no_point_of_the_green_line_is_better_than_all_that_was_measured():
    axes = picture(figures(*WAYS)).axes[0]
    line = axes.lines[0]
    corners = _steps(line)
    places = [tuple(drawn.get_offsets()[0]) for drawn in axes.collections]
    assert len(corners) > 3
    for time, nbytes in corners:
        assert any(x <= time * (1 + 1e-9) and y <= nbytes * (1 + 1e-9) for x, y in places), (time, nbytes)


def _steps(line):
    """The corners of the line as it is drawn."""
    from matplotlib.cbook import STEP_LOOKUP_MAP

    return list(zip(*STEP_LOOKUP_MAP[line.get_drawstyle()](*line.get_data())))


@pytest.mark.parametrize(
    ("codec", "color"),
    [("frames (1 x 9; numba)", BLUE), ("zstd/1 (chosen: …)", RED), ("none (chosen: too noisy)", PURPLE)],
)
def test_colours_tell_what_was_stored_whatever_it_is_called(codec, color):
    drawn = points(picture(figures(SB3, way("auto", codec, 500, 9))).axes[0])
    assert to_hex(drawn["auto"].get_facecolor()[0]) == color
    assert to_hex(drawn[PLAIN].get_facecolor()[0]) == GRAY


@pytest.mark.parametrize(("ways", "chosen"), [(WAYS, "cells rle"), ((SB3, way("auto", "none", 990, 20)), PLAIN)])
def test_what_is_recommended_has_a_ring(ways, chosen):
    drawn = points(picture(figures(*ways)).axes[0])
    assert {name for name, one in drawn.items() if to_hex(one.get_edgecolor()[0]) == GREEN} == {chosen}


@pytest.mark.parametrize("nbytes", [990, 400, 70, 3])
def test_both_axes_are_labelled_however_close_the_points_are(nbytes):
    axes = picture(figures(SB3, way("auto", "none", nbytes, 10.4))).axes[0]
    assert len([text for text in axes.get_xticklabels() if text.get_text()]) >= 3
    assert len({text.get_text() for text in axes.get_yticklabels()}) >= 3


@pytest.mark.parametrize(("plain", "nbytes"), [(1.05e9, 1.0e9), (1.26e6, 1.2e6)])
def test_no_two_labels_are_the_same_however_large_the_sizes_are(plain, nbytes):
    axes = picture(figures(way(PLAIN, "", plain, 10), way("auto", "none", nbytes, 10.4))).axes[0]
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        assert len({text.get_text() for text in labels}) == len(labels) >= 3


def test_a_picture_names_every_way_to_store(wandering, tmp_path):
    advice = advise(wandering, codecs=["gzip/1"], **FEW)
    draw(advice, tmp_path / "advice.svg")
    drawn = (tmp_path / "advice.svg").read_text()
    for number, one in enumerate(advice.ranked, 1):
        assert f"{number}  {one.candidate.name}" in drawn
    assert "(recommended)" in drawn

"""The verdict follows from figures alone."""

import pytest

from sb3_extra_buffers.advisor.advice import decide, pareto_front
from sb3_extra_buffers.advisor.measurement import PLAIN, Candidate, Measured
from sb3_extra_buffers.errors import ParameterError

SIZE = 1000


def way(name, nbytes, micros, options=()):
    """A way to store, by what it takes for each transition."""
    return Measured(Candidate(name, dict(options)), {"": "zstd/1"}, 0.0, nbytes, micros * 1e-6, 0.0)


SB3 = way(PLAIN, 1000, 10)
QUICK = way("quick", 10, 9)
SMALL = way("small", 5, 17, {"prefer": "memory"})
SMALLEST = way("smallest", 2, 90, {"compression_method": "zstd/22"})


@pytest.mark.parametrize(("prefer", "expected"), [("speed", QUICK), ("balanced", SMALL), ("memory", SMALLEST)])
def test_who_prefers_speed_gets_the_fastest_and_who_prefers_memory_the_smallest(prefer, expected):
    verdict = decide([SB3, SMALLEST, QUICK, SMALL], SIZE, prefer)
    assert verdict.chosen is expected
    assert verdict.compress


def test_of_what_is_nearly_as_fast_the_smallest_is_chosen():
    assert decide([SB3, QUICK, way("better", 6, 10)], SIZE).chosen.candidate.name == "better"


def test_of_what_is_nearly_as_small_the_shortest_line_is_chosen():
    longer = way("longer", 9.8, 9, {"compression_method": "lz4-block/0"})
    assert decide([SB3, longer, QUICK], SIZE).chosen is QUICK


def test_what_saves_less_than_a_fifth_is_not_recommended():
    verdict = decide([SB3, way("auto", 900, 5)], SIZE)
    assert verdict.chosen is SB3
    assert not verdict.compress
    assert verdict.reason == "Do not compress: at best, the buffer would be 1.11 times smaller."


def test_the_reason_has_the_figures():
    assert (
        decide([SB3, QUICK], SIZE).reason == "100 times smaller than Stable-Baselines3's buffer, in 0.90 of its time."
    )
    reason = decide([SB3, way("half", 500, 20)], SIZE).reason
    assert reason == "2.0 times smaller than Stable-Baselines3's buffer, in 2.00 of its time."


def test_what_is_saved_without_a_codec_is_said():
    raw = Measured(Candidate("auto"), {"": "none (chosen: too noisy)"}, 0.0, 500, 9e-6, 0.0)
    assert decide([SB3, raw], SIZE).reason.endswith("memory is saved because next observations are stored once.")


def test_where_no_codec_was_tried_none_is_judged():
    small = "bservations are too small to be tried (under 256 bytes)"
    assert decide([SB3, way("auto", 990, 9)], SIZE, tried=False).reason == f"Do not compress: o{small}."
    raw = Measured(Candidate("auto"), {"": "none (chosen: 200 bytes are too few to compress)"}, 0.0, 500, 9e-6, 0.0)
    once = "memory is saved because next observations are stored once."
    assert decide([SB3, raw], SIZE, tried=False).reason.endswith(f"O{small}; {once}")


def test_a_codec_for_any_key_is_a_codec():
    """The first key is a small vector, as in most spaces with keys; the second is what there is to save."""
    codecs = {"speed": "none (chosen: 12 bytes are too few to compress)", "screen": "frames (1 x 4096 bytes; numba)"}
    mixed = Measured(Candidate("auto"), codecs, 0.0, 20, 9e-6, 0.0)
    assert decide([SB3, mixed], SIZE).reason.endswith("in 0.90 of its time.")
    raw = Measured(Candidate("auto"), dict.fromkeys(codecs, codecs["speed"]), 0.0, 500, 9e-6, 0.0)
    assert "No codec makes the observations smaller" in decide([SB3, raw], SIZE).reason


@pytest.mark.parametrize(
    ("codecs", "kind"),
    [
        ({"": "frames (4 x 7056 bytes, stacked first; patches; numba)"}, "frames"),
        ({"": "zstd/1 (chosen: makes the first observations 8.3 times smaller)"}, "cells"),
        ({"": "none (chosen: too noisy)"}, "none"),
        ({"a": "none", "b": "rle"}, "cells"),
        ({"a": "rle", "b": "frames (1 x 4096 bytes; numba)"}, "frames"),
    ],
    ids=str,
)
def test_what_a_way_came_to_is_told_in_a_word(codecs, kind):
    assert Measured(Candidate("auto"), codecs, 0.0, 1.0, 1e-6, 1e-6).stored_as == kind


def test_memory_that_does_not_grow_counts_for_small_buffers():
    heavy = Measured(Candidate("heavy"), {"": "zstd/1"}, 1e6, 1.0, 1e-6, 0.0)
    assert not decide([SB3, heavy], 10).compress
    assert decide([SB3, heavy], 1_000_000).compress


def test_the_front_has_what_nothing_beats():
    beaten = way("beaten", 11, 50)
    assert pareto_front([SB3, beaten, SMALLEST, QUICK, SMALL], SIZE) == (SMALLEST, SMALL, QUICK)


def test_another_preference_is_refused():
    with pytest.raises(ParameterError, match="'fun' is not allowed; it must be one of: speed, balanced, memory"):
        decide([SB3, QUICK], SIZE, "fun")

"""Trainings are called identical only if every return and every weight is, as far as both have come."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from examples._lib.demo import Point
from examples._lib.learning import COMPRESSED, SB3, TASKS, Curve, Pair, Weights, learn, verdict

EPISODES = (Point(100, 1.0), Point(200, 2.0), Point(300, 4.0))
WEIGHTS = (Weights(150, "aa"), Weights(300, "bb"))
CURVE = Curve("catch", COMPRESSED, 1, 300, EPISODES, WEIGHTS, 0.0)


def test_equal_curves_are_identical():
    found = verdict(Pair(CURVE, replace(CURVE, buffer=SB3, cpu_seconds=9.0)))
    assert found.identical
    assert (found.steps, found.episodes, found.checkpoints, found.first, found.last) == (300, 3, 2, 7 / 3, 7 / 3)


@pytest.mark.parametrize(
    "other",
    [
        replace(CURVE, episodes=(*EPISODES[:2], Point(300, 5.0))),
        replace(CURVE, episodes=(*EPISODES[:2], Point(299, 4.0))),
        replace(CURVE, episodes=EPISODES[:2]),
        replace(CURVE, weights=(WEIGHTS[0], Weights(300, "bc"))),
    ],
    ids=["return", "end", "missing episode", "weights"],
)
def test_any_difference_is_found(other):
    assert not verdict(Pair(CURVE, other)).identical
    assert "different, which is a bug" in str(verdict(Pair(CURVE, other)))


def test_what_only_one_has_done_is_not_compared():
    short = replace(CURVE, steps=250, episodes=EPISODES[:2], weights=WEIGHTS[:1])
    found = verdict(Pair(CURVE, short))
    assert found.identical
    assert (found.steps, found.episodes, found.checkpoints, found.last) == (250, 2, 1, 1.5)


def test_a_curve_survives_json():
    assert Curve.from_json(json.loads(json.dumps(CURVE.as_json()))) == CURVE


@pytest.mark.parametrize("task", list(TASKS))
def test_a_short_training_is_identical_with_both_buffers(task):
    steps = {"pong": 2 * 2048, "catch": 1400}[task]  # the shortest in which weights change
    pair = Pair(*(learn(task, buffer, 7, steps, None, lambda *_: None) for buffer in (COMPRESSED, SB3)))
    assert verdict(pair).identical
    assert len({weights.digest for weights in pair.compressed.weights}) > 1
    other = learn(task, SB3, 8, steps, None, lambda *_: None)
    assert not verdict(Pair(pair.compressed, other)).identical


def test_a_training_that_runs_out_of_time_is_the_beginning_of_a_longer_one():
    whole = learn("catch", SB3, 7, 1400, None, lambda *_: None)
    early = learn("catch", SB3, 7, 1400, 0.0, lambda *_: None)
    assert early.steps < whole.steps
    assert verdict(Pair(whole, early)).identical

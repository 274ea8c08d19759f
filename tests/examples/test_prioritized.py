"""Prioritized replay learns the blind cliffwalk with fewer updates; results survive JSON, and are drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from examples._lib.prioritized import PRIORITIZED, UNIFORM, Curve, Walk, _memory, as_json, catch, cliffwalk, from_json
from examples.example_train_prioritized import main


def test_the_memory_of_a_cliffwalk_has_one_reward_and_every_transition_as_often_as_the_paper_says() -> None:
    buffer = _memory(UNIFORM, 4, 0)
    states = np.asarray(buffer.observations)[:, 0, 0].astype(int)
    assert buffer.size() == 2**5 - 2
    assert np.bincount(states).tolist() == [16, 8, 4, 2]
    assert buffer.rewards.sum() == 1
    assert buffer.dones.sum() == 8 + 4 + 2 + 1 + 1


def test_prioritized_replay_needs_fewer_updates() -> None:
    updates = {replay: [cliffwalk(replay, 6, seed).updates for seed in range(5)] for replay in (UNIFORM, PRIORITIZED)}
    assert np.median(updates[PRIORITIZED]) < np.median(updates[UNIFORM]) / 2
    assert cliffwalk(PRIORITIZED, 6, 0).updates == updates[PRIORITIZED][0]


@pytest.mark.parametrize("replay", [UNIFORM, PRIORITIZED])
def test_a_short_training_on_images_has_episodes(replay: str) -> None:
    curve = catch(replay, 1, 1400)
    assert curve.episodes


def test_results_survive_json_and_are_drawn(tmp_path: Path) -> None:
    walks, curves = [], []
    for replay in (UNIFORM, PRIORITIZED):
        walks += [Walk(replay, states, seed, 10 * states) for states in (2, 3) for seed in (1, 2)]
        curves += [Curve(replay, 1, tuple((100 * number, 1.0) for number in range(1, 9)))]
    content = as_json(walks, curves)
    assert from_json(json.loads(json.dumps(content))) == (walks, curves)
    (tmp_path / "known.json").write_text(json.dumps(content))
    main(["--tasks", "--add-to", str(tmp_path / "known.json"), "--plot", str(tmp_path / "plot.svg")])
    assert (tmp_path / "plot.svg").read_text().startswith("<?xml")

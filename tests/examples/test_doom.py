"""Doom as an environment: the same for the same seed, masks of classes, true ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.env_checker import check_env

from benchmarks._lib.doom import CLASSES, OBSERVATIONS, SHADES, DoomEnv, mask_of
from sb3_extra_buffers.errors import ParameterError

Maker = Callable[..., DoomEnv]


@pytest.fixture
def make() -> Iterator[Maker]:
    made: list[DoomEnv] = []

    def make(*args: Any, **kwargs: Any) -> DoomEnv:
        made.append(DoomEnv(*args, **kwargs))
        return made[-1]

    yield make
    for env in made:
        env.close()


def played(env: DoomEnv, steps: int) -> list[tuple[Any, float, bool, bool]]:
    env.reset(seed=7)
    random, seen = np.random.default_rng(0), []
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(random.integers(env.action_space.n))
        seen.append((observation, reward, terminated, truncated))
        if terminated or truncated:
            env.reset()
    return seen


@pytest.mark.parametrize("observe", OBSERVATIONS)
def test_it_is_an_environment_as_stable_baselines3_wants_it(make: Maker, observe: str) -> None:
    check_env(make(observe=observe))


def test_both_views_are_those_of_the_same_game(make: Maker) -> None:
    both, masks, pictures = (played(make(observe=observe), 40) for observe in ("both", "mask", "rgb"))
    for two, mask, picture in zip(both, masks, pictures):
        np.testing.assert_array_equal(two[0]["mask"], mask[0])
        np.testing.assert_array_equal(two[0]["rgb"], picture[0])
        assert two[1:] == mask[1:] == picture[1:]
    assert any(terminated for _, _, terminated, _ in both)


def test_masks_hold_shades_of_classes_and_nothing_else(make: Maker) -> None:
    masks = np.stack([observation for observation, *_ in played(make(), 60)])
    assert set(np.unique(masks)) <= set(SHADES)
    # Walls, floors, the player's weapon and the monsters of the corridor.
    assert set(SHADES[[0, 1, 2, 3]]) <= set(np.unique(masks))


def test_an_episode_that_runs_out_of_time_is_truncated(make: Maker) -> None:
    env = make("my_way_home", frame_skip=100)
    ends = [(terminated, truncated) for *_, terminated, truncated in played(env, 50)]
    assert (False, True) in ends
    assert (True, True) not in ends


def test_every_pixel_gets_the_shade_of_its_object() -> None:
    labels = np.array([[0, 1, 9], [40, 255, 40]], np.uint8)
    mask = mask_of(labels, {9: "Monster", 40: "Health", 255: "Self"})
    shade = dict(zip(CLASSES, SHADES))
    expected = [
        [shade["wall"], shade["floor, ceiling"], shade["monster"]],
        [shade["item"], shade["self"], shade["item"]],
    ]
    assert mask.shape == (2, 3, 1)
    np.testing.assert_array_equal(mask[..., 0], expected)


def test_a_category_that_nobody_knows_is_other() -> None:
    assert mask_of(np.array([[5]], np.uint8), {5: "Vegetation"})[0, 0, 0] == SHADES[CLASSES.index("other")]


def test_what_does_not_exist_is_refused_with_what_does(make: Maker) -> None:
    with pytest.raises(ParameterError, match="deadly_corridor"):
        make("corridor")
    with pytest.raises(ParameterError, match="mask, rgb, both"):
        make(observe="depth")

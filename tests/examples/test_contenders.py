"""Buffers that are compared hold what was recorded, and whoever holds something else is found out."""

from __future__ import annotations

import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

from benchmarks._lib.buffers import SB3
from benchmarks._lib.game_recording import Recording, record
from benchmarks._lib.measure import WrongBytesError
from examples._lib.catch import Catch
from examples._lib.contenders import (
    EVERYTHING,
    LAYOUTS,
    QUICK,
    check,
    chosen,
    fill,
    make_contender,
    measure_loading,
    measure_saving,
)
from sb3_extra_buffers import codecs
from sb3_extra_buffers.errors import ParameterError, UnknownPluginError

_STEPS = 90
WITH_TIMEOUTS = ("SB3+timeouts", "gzip1+timeouts", "frames/speed+timeouts")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    env, random = DummyVecEnv([Catch, Catch]), np.random.default_rng(0)
    env.seed(1)
    path = str(tmp_path_factory.mktemp("recording"))
    record(path, env, _STEPS, lambda observations: random.integers(3, size=len(observations)))
    return path


@pytest.mark.parametrize("rows", [_STEPS - 25, _STEPS, _STEPS + 40])
@pytest.mark.parametrize(
    "name", [SB3, "none", "gzip1", "rle", *LAYOUTS, "SB3+timeouts", "gzip1+timeouts", "frames/speed+timeouts"]
)
def test_every_buffer_holds_what_was_recorded(folder: str, name: str, rows: int) -> None:
    recording = Recording(folder)
    buffer = make_contender(name, rows * recording.n_envs, recording)
    filling = fill(buffer, recording, float("inf"))
    assert filling.is_complete
    assert filling.to_all_steps == filling.to_all_rows == 1
    check(name, buffer, recording, filling.steps)


@pytest.mark.parametrize("row", [0, 24, 40, 64])
def test_a_wrong_bit_is_found(folder: str, row: int) -> None:
    recording = Recording(folder)
    buffer = make_contender(SB3, 65 * recording.n_envs, recording)
    fill(buffer, recording, float("inf"))
    buffer.observations[row, 1, 40, 40] ^= 1
    with pytest.raises(WrongBytesError, match=SB3):
        check(SB3, buffer, recording, _STEPS)


def test_a_wrong_bit_of_a_next_observation_is_found(folder: str) -> None:
    recording = Recording(folder)
    buffer = make_contender("SB3+timeouts", _STEPS * recording.n_envs, recording)
    fill(buffer, recording, float("inf"))
    buffer.next_observations[7, 1, 40, 40] ^= 1
    with pytest.raises(WrongBytesError):
        check("SB3+timeouts", buffer, recording, _STEPS)


def test_what_takes_too_long_is_broken_off_and_extrapolated(folder: str) -> None:
    recording = Recording(folder)
    buffer = make_contender("rle", 20 * recording.n_envs, recording)
    filling = fill(buffer, recording, 0.0)
    assert filling.steps == 1
    assert not filling.is_complete
    assert filling.to_all_steps == _STEPS
    assert filling.to_all_rows == 20
    check("rle", buffer, recording, filling.steps)


@pytest.mark.parametrize("name", [SB3, "none", "gzip1"])
def test_what_a_transition_takes_is_what_most_of_them_took(folder: str, name: str) -> None:
    recording = Recording(folder)
    buffer = make_contender(name, _STEPS * recording.n_envs, recording)
    growth = fill(buffer, recording, float("inf")).growth
    if name == "gzip1":
        codec = codecs.bind(name, codecs.CellSpec(np.uint8, 84 * 84))
        observations = recording.observations[32:64].reshape(-1, 84 * 84)
        assert growth == pytest.approx(np.mean([len(codec.encode(cell)) for cell in observations]), rel=0.02)
    else:
        assert growth == 84 * 84


def test_saving_is_measured_of_a_full_buffer(folder: str) -> None:
    saving = measure_saving(folder, "gzip1", 160, float("inf"), 3)
    assert saving.transitions == 160
    assert saving.resident > 0
    assert saving.sample[32].wall > 0


def test_loading_is_measured_of_what_was_saved(folder: str) -> None:
    loading = measure_loading(folder, "gzip1", 128, float("inf"))
    assert 0 < loading.file < 128 * 84 * 84
    assert loading.load.wall > 0


def test_nothing_on_the_list_is_left_out_or_named_twice() -> None:
    names, missing = chosen(None, quick=False)
    assert sorted([*names, *missing]) == sorted(EVERYTHING)
    assert set(QUICK) <= set(EVERYTHING)


def test_what_is_asked_for_is_checked_before_anything_is_measured() -> None:
    assert chosen(["gzip1", "gzip1", "frames/speed"], quick=True) == (["gzip1", "frames/speed"], [])
    assert chosen([], quick=True) == ([], [])
    with pytest.raises(UnknownPluginError):
        chosen(["zip3"], quick=True)
    with pytest.raises(ParameterError):
        chosen(["gzip10"], quick=True)
    with pytest.raises(ParameterError, match="frames/memory"):
        chosen(["frames/small"], quick=True)

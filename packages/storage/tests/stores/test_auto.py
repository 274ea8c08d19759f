"""``auto`` says what it chose and why, and chooses nothing that does not pay."""

import logging

import numpy as np
import pytest

from sb3_extra_buffers.codecs import CellSpec, names
from sb3_extra_buffers.stores import choice, preferences
from sb3_extra_buffers.stores.choice import choose_by_content, choose_by_space
from sb3_extra_buffers.stores.judging import MIN_NBYTES

CELL = CellSpec(np.uint8, 1600)
BLOCKY = np.kron(np.arange(16, dtype=np.uint8).reshape(4, 4), np.ones((10, 10), np.uint8)).reshape(1, -1)
NOISE = np.random.default_rng(0).integers(0, 256, (1, 1600), np.uint8)


@pytest.fixture
def built_in(monkeypatch):
    for module in (choice, preferences):
        monkeypatch.setattr(module, "names", lambda: ("gzip", "none", "rle"))


def test_small_cells_are_not_compressed_whatever_is_in_them():
    found = choose_by_space(CellSpec(np.float32, MIN_NBYTES // 4 - 1))
    assert (found.codec, found.reason) == (None, "chosen: 252 bytes are too few to compress")


def test_from_a_certain_size_on_the_content_decides():
    assert choose_by_space(CellSpec(np.uint8, MIN_NBYTES)) is None


def test_what_compresses_well_gets_a_codec(built_in):
    found = choose_by_content("Buffer image", CELL, BLOCKY)
    assert str(found.codec.spec) == "gzip/1"
    assert found.reason.startswith("chosen: makes the first observations ")


def test_noise_is_stored_as_it_is(built_in):
    found = choose_by_content("Buffer image", CELL, NOISE)
    assert found.codec is None
    assert found.reason == "chosen: gzip/1 makes the first observations only 1.00 times smaller"


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_a_codec_must_save_a_fifth(built_in, share):
    rows = NOISE.copy()
    rows[:, : int(1600 * share)] = 0
    assert (choose_by_content("x", CELL, rows).codec is None) == (share < 0.2)


@pytest.mark.parametrize(("rows", "told"), [(BLOCKY, "gzip/1 chosen: makes"), (NOISE, "none chosen: gzip/1 makes")])
def test_the_log_tells_what_was_chosen_for_what_and_why(built_in, caplog, rows, told):
    with caplog.at_level(logging.INFO, logger="sb3_extra_buffers"):
        found = choose_by_content("Buffer image", CELL, rows)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("sb3_extra_buffers", logging.INFO)
    assert record.getMessage().startswith(f"Buffer image: {told}")
    assert record.getMessage().endswith(found.reason)


def test_all_first_rows_are_judged_together(built_in):
    assert choose_by_content("x", CELL, np.concatenate([NOISE, BLOCKY, BLOCKY])).codec is not None
    assert choose_by_content("x", CELL, np.concatenate([NOISE] * 9 + [BLOCKY])).codec is None


def test_the_first_installed_codec_of_the_list_is_considered():
    found = choose_by_content("x", CELL, BLOCKY)
    preferred = next(name for name in ("zstd", "lz4-block", "igzip", "gzip") if name in names())
    assert found.codec.spec.name in {preferred, "rle-jit"}


@pytest.mark.skipif("rle-jit" not in names(), reason="needs the codec rle-jit")
def test_runs_are_preferred_where_they_are_about_as_small(monkeypatch):
    for module in (choice, preferences):
        monkeypatch.setattr(module, "names", lambda: ("gzip", "none", "rle", "rle-jit"))
    stripes = np.repeat(np.arange(2, dtype=np.uint8), 800).reshape(1, -1)
    assert choose_by_content("x", CELL, stripes).codec.spec.name == "rle-jit"
    pattern = np.tile(np.arange(8, dtype=np.uint8), 200).reshape(1, -1)
    assert choose_by_content("x", CELL, pattern).codec.spec.name == "gzip"
    # A blank screen says nothing about those that follow.
    assert choose_by_content("x", CELL, np.zeros((1, 1600), np.uint8)).codec.spec.name == "gzip"

"""The automatic choice: what it chooses, why, and which plugins can be chosen."""

import logging
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from sb3_extra_buffers.codecs import CellSpec, CodecSpec, names, registry
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.stores import PREFERENCES, FrameRequest, Place, StoreRequest, auto, build_stores, parse_request
from sb3_extra_buffers.stores.auto import (
    BALANCED,
    MEMORY,
    MIN_NBYTES,
    SPEED,
    Candidate,
    Preference,
    Role,
    cell_candidates,
    choose_by_content,
    choose_by_space,
    choose_for_chunks,
    explain,
    pick,
)

CELL = CellSpec(np.uint8, 1600)
BLOCKY = np.kron(np.arange(16, dtype=np.uint8).reshape(4, 4), np.ones((10, 10), np.uint8)).reshape(1, -1)
NOISE = np.random.default_rng(0).integers(0, 256, (1, 1600), np.uint8)


@pytest.fixture
def built_in(monkeypatch):
    monkeypatch.setattr(auto, "names", lambda: ("gzip", "none", "rle"))


def test_small_cells_are_never_compressed():
    found = choose_by_space(CellSpec(np.float32, MIN_NBYTES // 4 - 1))
    assert (found.codec, found.reason) == (None, "chosen: 252 bytes are too few to compress")


def test_the_content_decides_about_larger_cells():
    assert choose_by_space(CellSpec(np.uint8, MIN_NBYTES)) is None


def test_content_that_compresses_well_gets_a_codec(built_in):
    found = choose_by_content("Buffer image", CELL, BLOCKY, MEMORY)
    assert str(found.codec.spec) in {"gzip/1", "gzip/6"}
    assert found.reason.startswith("chosen: makes the first observations ")


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_noise_is_not_compressed(built_in, prefer):
    found = choose_by_content("Buffer image", CELL, NOISE, prefer)
    assert found.codec is None
    assert found.reason == "chosen: no codec makes the first observations a fifth smaller"


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_a_codec_must_save_a_fifth(built_in, share):
    rows = NOISE.copy()
    rows[:, : int(1600 * share)] = 0
    assert (choose_by_content("x", CELL, rows, MEMORY).codec is None) == (share < 0.2)


@pytest.mark.parametrize(("rows", "logged"), [(BLOCKY, "gzip/"), (NOISE, "none chosen: no codec makes")])
def test_the_choice_is_logged_with_its_reason_and_what_other_settings_give(built_in, caplog, rows, logged):
    with caplog.at_level(logging.INFO, logger="sb3_extra_buffers"):
        found = choose_by_content("Buffer image", CELL, rows, MEMORY)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("sb3_extra_buffers", logging.INFO)
    assert record.getMessage().startswith(f"Buffer image: {logged}")
    assert found.reason in record.getMessage()
    assert "; prefer='memory': " in record.getMessage()
    assert "; 'balanced': " in record.getMessage()
    assert "; 'speed': " in record.getMessage()


def test_the_first_rows_are_tried_together(built_in):
    assert choose_by_content("x", CELL, np.concatenate([NOISE, BLOCKY, BLOCKY]), MEMORY).codec is not None
    assert choose_by_content("x", CELL, np.concatenate([NOISE] * 9 + [BLOCKY]), MEMORY).codec is None


def test_each_setting_takes_its_own_candidate():
    raw, quick = Candidate("raw", 0.5, 0.5), Candidate("quick", 0.1, 0.9)
    balanced, small = Candidate("balanced", 0.02, 3), Candidate("small", 0.01, 9)
    strong = Candidate("strong", 0.001, 2, is_strong=True)
    candidates = [raw, quick, balanced, small, strong]
    assert pick(candidates, SPEED) is quick
    assert pick(candidates, BALANCED) is balanced
    assert pick(candidates, MEMORY) is strong
    text = explain(candidates, BALANCED)
    assert text == (
        "prefer='balanced': balanced (50 times less, time 3); 'speed': quick (10 times less, time 0.9); "
        "'memory': strong (1000 times less, time 2); "
        "against raw (2.0 times less, time 0.5), small (100 times less, time 9)"
    )
    assert "'speed': the same" in explain([raw], MEMORY)
    # Where nothing is smaller by more than a few bytes, it is not worth any time.
    slow = Candidate("slow", 0.495, 300, is_strong=True)
    assert pick([raw, slow], MEMORY) is raw
    # Nothing is as fast as Stable-Baselines3's buffer: the fastest is as close as can be.
    assert pick([balanced, small], SPEED) is balanced


def test_candidates_are_compared_by_what_their_codecs_declare():
    rows = np.tile(BLOCKY, (4, 40))
    cell = CellSpec(np.uint8, rows.shape[1])
    found = cell_candidates(cell, rows, has_next=True)
    declared = {name: registry.load(name).automatic for name in names() if registry.load(name).automatic}
    assert {one.codec.spec.name for one in found if one.codec} == set(declared)
    by_name = {}
    for one in found:
        if one.codec is not None and not one.is_strong:
            name = one.codec.spec.name
            by_name[name] = one
            payload = len(one.codec.encode(rows[0]))
            cost = max(1.4, 0.2 * declared[name].decode_cost) * cell.nbytes + 1.6 * declared[name].decode_cost * payload
            assert one.time == pytest.approx((cost + declared[name].call_cost) / (3 * cell.nbytes), rel=1e-6)
            assert one.memory == pytest.approx((payload + 17) / (2 * cell.nbytes), rel=1e-6)
    own = choose_by_content("x", cell, rows)
    assert own.codec.spec.name == min(by_name.values(), key=lambda one: one.memory * one.time).codec.spec.name


@pytest.mark.skipif("rle-jit" not in names(), reason="needs the codec rle-jit")
def test_a_special_codec_is_chosen_after_its_content_was_seen(monkeypatch):
    monkeypatch.setattr(auto, "names", lambda: ("gzip", "none", "rle", "rle-jit"))
    cell = CellSpec(np.uint8, 160_000)
    stripes = np.repeat(np.arange(2, dtype=np.uint8), 80_000).reshape(1, -1)
    assert choose_by_content("x", cell, stripes).codec.spec.name == "rle-jit"
    pattern = np.tile(np.arange(8, dtype=np.uint8), 20_000).reshape(1, -1)
    assert choose_by_content("x", cell, pattern).codec.spec.name == "gzip"
    # A blank first screen says nothing about those that follow.
    assert choose_by_content("x", cell, np.zeros((1, 160_000), np.uint8)).codec.spec.name == "gzip"


@pytest.mark.parametrize(
    "how",
    [
        *PREFERENCES.values(),
        Preference(4, CodecSpec("gzip", {"level": 1}), None),
        Preference(9, fallback=None),
    ],
)
def test_how_frames_are_stored_is_saved(how):
    assert Preference.from_json(how.to_json()) == how


@pytest.mark.parametrize("wrong", [{}, {"chunk": 0}, {"chunk": True}, {"every": "x"}, {"fallback": 3}, {"every": {}}])
def test_a_damaged_way_to_store_frames_is_refused(wrong):
    content = {**PREFERENCES[SPEED].to_json(), **wrong} if wrong else {}
    with pytest.raises((ValueError, KeyError, TypeError, ParameterError)):
        Preference.from_json(content)


# What the user asked for.


@pytest.mark.parametrize(
    ("method", "kwargs", "spec"),
    [
        ("auto", None, None),
        ("auto", {}, None),
        ("auto", {"elem_type": "u1", "runs_type": "u2"}, None),
        ("gzip", None, CodecSpec("gzip")),
        ("gzip3", None, CodecSpec("gzip", {"level": 3})),
        ("zstd-5", None, CodecSpec("zstd", {"level": -5})),
        ("lz4-frame/5", None, CodecSpec("lz4-frame", {"level": 5})),
        ("gzip", {"level": 4}, CodecSpec("gzip", {"level": 4})),
        ("gzip", {"compresslevel": 4}, CodecSpec("gzip", {"level": 4})),
        ("gzip3", {"level": 3}, CodecSpec("gzip", {"level": 3})),
        ("gzip", {"elem_type": "u1", "runs_type": "u2", "arr_configs": {}}, CodecSpec("gzip")),
        (CodecSpec("gzip", {"level": 2}), None, CodecSpec("gzip", {"level": 2})),
        ({"name": "gzip", "params": {"level": 2}}, None, CodecSpec("gzip", {"level": 2})),
    ],
)
def test_a_request_becomes_a_spec_and_auto_becomes_none(method, kwargs, spec):
    assert parse_request(method, kwargs) == spec


def test_parameters_without_a_codec_are_refused():
    with pytest.raises(ParameterError, match=r"compression_kwargs=\{'level': 3\} .*Name a compression_method"):
        parse_request("auto", {"level": 3})


def test_decompression_kwargs_of_old_scripts_are_accepted_and_no_others():
    assert parse_request("gzip", None, {"elem_type": "u1", "runs_type": "u2", "arr_configs": {}}) == CodecSpec("gzip")
    with pytest.raises(ParameterError, match=r"decompression_kwargs=\{'foo': 1\} .*arr_configs, elem_type, runs_type"):
        parse_request("gzip", None, {"foo": 1})


def test_arguments_are_not_changed():
    kwargs, spec = {"compresslevel": 2, "elem_type": "u1"}, CodecSpec("gzip", {"level": 2})
    parse_request(spec, kwargs, {"elem_type": "u1"})
    assert kwargs == {"compresslevel": 2, "elem_type": "u1"}
    assert spec == CodecSpec("gzip", {"level": 2})


def test_two_levels_are_refused():
    for kwargs in ({"level": 4}, {"compresslevel": 4}):
        with pytest.raises(ParameterError, match=r"'gzip3' asks for another level. Give the level once"):
            parse_request("gzip3", kwargs)


@pytest.mark.parametrize("method", ["", None, 5, ["gzip"]])
def test_a_method_that_names_no_codec_is_refused(method):
    with pytest.raises(ParameterError, match=re.escape(f"={method!r} is not allowed")):
        parse_request(method)


# Plugins of third parties.

#: A lossless codec whose payloads have a given size, whatever the content: a number that leads to the cell.
FAKE = """
import time

from sb3_extra_buffers.codecs import Automatic, ByteCodec, CodecPlugin, Levels, hookimpl

CELLS = []


class FakeCodec(ByteCodec):
    def compress(self, cell):
        time.sleep({delay})
        CELLS.append(bytes(cell))
        return (len(CELLS) - 1).to_bytes({nbytes}, "little")

    def decompress_into(self, payload, out):
        self.fill(out, CELLS[int.from_bytes(payload, "little")], payload)


@hookimpl
def sb3_extra_buffers_codec():
    return CodecPlugin(protocol=1, factory=FakeCodec, summary="x", levels={levels}, automatic={automatic})
"""
HALF = NOISE.copy()
HALF[:, :800] = 0  # what others compress to a bit more than 800 bytes


@pytest.fixture
def fake(install):
    """Install a codec with payloads of a given size."""

    def fake(name, nbytes, automatic, levels=None, delay=0.0):
        source = FAKE.format(nbytes=nbytes, automatic=automatic, levels=levels, delay=delay)
        install(f"{name}-dist", name, f"fake_{name}", source)

    return fake


def chosen(rows=HALF, prefer=BALANCED):
    codec = choose_by_content("x", CELL, rows, prefer).codec
    return None if codec is None else codec.spec.name


def test_a_codec_that_is_smaller_at_a_fair_cost_is_chosen(fake):
    fake("third", 100, "Automatic(decode_cost=5, call_cost=1)")
    assert chosen() == "third"
    (store,), _ = build_stores([StoreRequest("x", (1600,), np.dtype(np.uint8), 10)], Place())
    for cell in range(5):  # half of the cells
        assert store.describe().startswith("auto (not yet chosen, until 5 observations")
        store.write(np.array([cell]), np.roll(HALF, cell))
    assert store.describe().startswith("third (chosen: makes the first observations 16.0 times smaller")
    assert store.explanation.startswith("prefer='balanced': third (")
    out = np.empty_like(HALF)
    store.read(np.array([3]), out)
    assert (out == np.roll(HALF, 3)).all()


def test_a_codec_that_is_smaller_but_far_costlier_is_not_chosen(fake):
    before = chosen()
    fake("third", 600, "Automatic(decode_cost=400)")
    assert chosen() == before != "third"


@pytest.mark.parametrize(("nbytes", "winner"), [(790, "slow"), (810, "quick")])
def test_for_chunks_twice_the_cost_must_save_a_fifth(fake, monkeypatch, nbytes, winner):
    fake("quick", 1000, "Automatic(decode_cost=10)")
    fake("slow", nbytes, "Automatic(decode_cost=20)")
    monkeypatch.setattr(auto, "names", lambda: ("quick", "slow"))
    assert choose_for_chunks(Role.PATCHES, HALF[0]).codec.spec.name == winner


@pytest.mark.parametrize(("cost", "winner"), [(1, "third"), (400, None)])
def test_the_cost_of_a_call_counts(fake, monkeypatch, cost, winner):
    fake("third", 100, f"Automatic(decode_cost=5, call_cost={cost}00)")
    monkeypatch.setattr(auto, "names", lambda: ("third",))
    assert chosen() == winner
    assert chosen(prefer=MEMORY) == "third"


@pytest.mark.parametrize(
    "rows", [HALF, NOISE, BLOCKY, np.zeros((1, 1600), np.uint8)], ids=["half", "noise", "blocky", "0"]
)
def test_a_codec_without_a_declaration_is_never_chosen(fake, rows):
    before, chunks = chosen(rows), [choose_for_chunks(role, rows[0]).codec.spec for role in Role]
    fake("third", 20, None)
    assert chosen(rows) == before
    assert [choose_for_chunks(role, rows[0]).codec.spec for role in Role] == chunks


def test_a_special_codec_is_not_chosen_for_blank_rows_or_chunks(fake):
    blank = np.full((3, 1600), 7, np.uint8)
    before, chunks = chosen(blank), [choose_for_chunks(role, HALF[0]).codec.spec for role in Role]
    fake("third", 20, "Automatic(decode_cost=1, general=False, call_cost=1)")
    assert chosen() == "third"
    assert chosen(blank) == before
    assert [choose_for_chunks(role, HALF[0]).codec.spec for role in Role] == chunks


@pytest.mark.parametrize("prefer", PREFERENCES)
def test_a_general_codec_can_be_chosen_for_chunks(fake, prefer):
    fake("third", 20, "Automatic(decode_cost=1)")
    request = FrameRequest("x", (40, 40), np.dtype(np.uint8), 100, preference=PREFERENCES[prefer])
    (store,), _ = build_stores([request], Place())
    rows = np.random.default_rng(1).integers(0, 256, (100, 1600), np.uint8)
    expected = "patches, compressed" + (" if large" if prefer == "speed" else "")
    assert f"; {expected}; " in store.describe()
    for cell, row in enumerate(rows):
        store.write(np.array([cell]), row[np.newaxis])
    assert f"; {expected.replace('compressed', 'third')}; " in store.describe()
    out = np.empty_like(rows)
    store.read(np.arange(100), out)
    assert (out == rows).all()


@pytest.mark.parametrize(
    ("levels", "expected"),
    [((1, 5, 9), (1, 5, 9)), ((2, 6), (2, 2, 6)), ((4,), (4, 4, 4)), ((1, 2, 3, 4), (1, 2, 4))],
)
def test_each_role_has_its_level(fake, monkeypatch, levels, expected):
    fake("third", 20, f"Automatic(decode_cost=1, levels={levels})", "Levels(default=9, ranges=((1, 9),))")
    monkeypatch.setattr(auto, "names", lambda: ("third",))
    found = (
        choose_for_chunks(Role.PATCHES, HALF[0]).codec,
        cell_candidates(CELL, HALF, has_next=True)[1].codec,
        choose_for_chunks(Role.SMALLEST, HALF[0]).codec,
    )
    assert tuple(codec.spec.params["level"] for codec in found) == expected


@pytest.mark.parametrize("role", Role)
def test_the_cost_counts_for_chunks_too(fake, role):
    fake("third", 20, "Automatic(decode_cost=1e9)")
    assert choose_for_chunks(role, HALF[0]).codec.spec.name != "third"


BROKEN = {
    "import": ("import time", "import no_such_module"),
    "hook": ("    return CodecPlugin(", "    raise OSError('no library')\n    return CodecPlugin("),
    "declaration": ("decode_cost=1", "decode_cost=-1"),
    "levels": ("decode_cost=1", "decode_cost=1, levels=(99,)"),
    "factory": (
        "    def compress",
        "    def __init__(self, spec, cell):\n        raise OSError('no library')\n\n    def compress",
    ),
    "encode": ("        CELLS.append", "        raise OSError('no library')\n        CELLS.append"),
}


@pytest.mark.parametrize("part", BROKEN)
def test_a_broken_plugin_is_skipped_with_a_warning(install, caplog, part):
    before, chunk = chosen(), choose_for_chunks(Role.PATCHES, HALF[0]).codec.spec
    source = FAKE.format(nbytes=20, automatic="Automatic(decode_cost=1)", levels=None, delay=0).replace(*BROKEN[part])
    install("third-dist", "third", "fake_third", source)
    with caplog.at_level(logging.WARNING, logger="sb3_extra_buffers"):
        assert chosen() == before
        assert caplog.records
        assert choose_for_chunks(Role.PATCHES, HALF[0]).codec.spec == chunk
    for record in caplog.records:
        assert record.levelno == logging.WARNING
        assert re.search(
            r"The codec 'third' is installed but does not work; it is not considered\. .", record.getMessage()
        )


@pytest.mark.parametrize("order", [("aaa", "zzz"), ("zzz", "aaa")])
def test_of_equal_codecs_the_first_by_name_is_chosen(fake, order):
    for name in order:
        fake(name, 30, "Automatic(decode_cost=3, call_cost=1)")
    assert chosen() == "aaa"


def test_no_clock_decides(fake):
    fake("quick", 100, "Automatic(decode_cost=10, call_cost=1)")
    fake("slow", 90, "Automatic(decode_cost=10, call_cost=1)", delay=0.05)
    assert chosen() == "slow"


def test_the_choice_is_the_same_in_every_process():
    program = (
        "import numpy as np; from sb3_extra_buffers.codecs import CellSpec; from sb3_extra_buffers.stores import auto\n"
        "rows = np.kron(np.arange(16, dtype=np.uint8).reshape(4, 4), np.ones((10, 10), np.uint8)).reshape(1, -1)\n"
        "found = auto.choose_by_content('x', CellSpec(np.uint8, 1600), rows, 'memory')\n"
        "chunks = [auto.choose_for_chunks(role, rows[0]).codec.spec for role in auto.Role]\n"
        "print(found.codec.spec, found.reason, *chunks)"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    own = choose_by_content("x", CELL, BLOCKY, MEMORY)
    chunks = [choose_for_chunks(role, BLOCKY[0]).codec.spec for role in Role]
    assert [" ".join(map(str, (own.codec.spec, own.reason, *chunks))) + "\n"] == [*runs]

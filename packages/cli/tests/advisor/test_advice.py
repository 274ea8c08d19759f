"""Advice on streams whose right answer is known."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from sb3_extra_buffers import codecs as registered
from sb3_extra_buffers.advisor import Stream, advise
from sb3_extra_buffers.advisor.measurement import PLAIN
from sb3_extra_buffers.advisor.stream import feed
from sb3_extra_buffers.errors import ParameterError

FEW = {"rounds": 2, "batch_size": 8, "progress": False}
FORGETS_SOME = """
    from sb3_extra_buffers.codecs import ByteCodec, CodecPlugin, hookimpl

    class ForgetsSome(ByteCodec):
        detects_corruption = False
        library_errors = ()

        def compress(self, cell):
            return bytes(cell[:40])

        def decompress_into(self, payload, out):
            raise RuntimeError("this stream is not mine")

    @hookimpl
    def sb3_extra_buffers_codec():
        return CodecPlugin(protocol=1, factory=ForgetsSome, summary="fails on data")
"""


def test_stacked_images_are_to_be_compressed_and_frames_are_tried(wandering):
    advice = advise(wandering, 100_000, codecs=["gzip/1", "rle"], **FEW)
    assert advice.verdict.compress
    assert not advice.failed
    names = [one.candidate.name for one in advice.measured]
    assert names[:4] == [PLAIN, "auto", "auto speed", "auto memory"]
    assert "cells gzip/1" in names
    assert "frames gzip/1" in names
    assert advice.measured[1].codec.startswith("frames (4 x 1296 bytes, stacked first")
    assert advice.plain.nbytes(100_000) == pytest.approx(2 * 4 * 36 * 36 * 100_000, rel=0.01)


def test_what_is_printed_is_a_table_and_the_lines_to_paste(wandering, noise, vectors):
    advice = advise(wandering, 100_000, codecs=["gzip/1"], **FEW)
    text = str(advice)
    for one in advice.measured:
        assert any(line.strip(" *").startswith(f"{one.candidate.name} ") for line in text.splitlines())
    assert text.startswith("made up: Box(0, 255, (4, 36, 36), uint8)\n199 transitions, 1 codecs and levels tried, ")
    assert f"\nauto: {advice.measured[1].codec}.\nRule of auto: the least memory times sampling time, " in text
    assert text.endswith("\n".join(f"    {line}" for line in advice.lines))
    assert "array(" not in repr(advice.stream)  # nor thousands of numbers
    assert "\nChoice: prefer='balanced': none (" in str(advise(noise, codecs=["rle"], **FEW))
    assert str(advise(vectors, **FEW)).endswith("Keep Stable-Baselines3's own ReplayBuffer.")


def test_noise_is_stored_as_it_is_and_once(noise):
    advice = advise(noise, codecs=["gzip/1", "rle"], **FEW)
    assert [one.candidate.name for one in advice.measured] == [PLAIN, "auto", "auto speed", "auto memory"]
    assert all(one.ratio < 1.25 for one in advice.screened)  # no codec was worth a buffer
    # What is left to save is that next observations are stored once.
    assert all(1.5 < advice.plain.nbytes(10**6) / one.nbytes(10**6) < 2.1 for one in advice.measured[1:])
    assert advice.measured[1].codec.startswith("none (chosen: ")


def test_small_vectors_are_not_to_be_compressed(vectors):
    advice = advise(vectors, **FEW)
    assert not advice.verdict.compress
    assert not advice.lines
    assert not advice.screened
    assert not advice.tried
    assert "too small to be tried (under 256 bytes)" in advice.verdict.reason
    assert [one.candidate.name for one in advice.measured] == [PLAIN, "auto"]
    # Four floats and what follows them, an action, a reward, an end and a timeout.
    assert advice.plain.nbytes_per_transition == 2 * 16 + 8 + 3 * 4


def test_a_codec_that_was_asked_for_is_tried_on_anything(vectors):
    for step in vectors.steps:
        for observations in (step.observations, step.next_observations):
            observations[:] = 1.0
    advice = advise(vectors, codecs=["rle"], **FEW)
    assert [str(one.spec) for one in advice.screened] == ["rle"]
    assert [one.candidate.name for one in advice.measured] == [PLAIN, "auto", "cells rle"]
    assert "too small" not in advice.verdict.reason


@pytest.mark.parametrize(
    ("asked", "goes_on"), [({"codecs": ["slow"]}, True), ({"prefer": "memory"}, True), ({}, False)]
)
def test_only_what_nobody_asked_for_must_be_quick(wandering, install, monkeypatch, asked, goes_on):
    """A millisecond and a half for each of 5 kB, and smaller than all others."""
    source = FORGETS_SOME.replace("return bytes(cell[:40])", "time.sleep(0.0015); return zlib.compress(cell, 9)[:]")
    source = source.replace('raise RuntimeError("this stream is not mine")', "out[:] = zlib.decompress(payload)")
    install("slow-dist", "slow", "fake_slow", source.replace("\n    from", "\n    import time, zlib\n    from", 1))
    monkeypatch.setattr(registered, "names", lambda: ("rle", "slow"))
    advice = advise(wandering, **{"codecs": None, **asked}, **FEW)
    assert ("cells slow" in [one.candidate.name for one in advice.measured]) is goes_on
    reasons = {str(one.spec): one.reason for one in advice.dropped}
    assert reasons.get("slow") == (None if goes_on else "more than 1.0 ms to encode an observation")
    assert advice.as_json()["dropped"] == reasons


def test_where_no_buffer_of_ours_survives_there_is_no_advice(wandering, monkeypatch):
    def refuse(*_):
        raise MemoryError("no room at all")

    monkeypatch.setattr(Stream, "compressed_buffer", refuse)
    with pytest.raises(
        ParameterError, match=r"(?s)'made up'.* \(auto: MemoryError: no room at all.*sb3-buffers doctor"
    ):
        advise(wandering, codecs=["gzip/1"], **FEW)


def test_memory_of_a_larger_buffer_is_foretold(wandering):
    """Extrapolated from 199 transitions; held against buffers of forty times as many."""
    size = 40 * len(wandering.steps)
    advice = advise(wandering, size, codecs=["gzip/6"], **FEW)
    for one in advice.measured[1:]:
        buffer = wandering.compressed_buffer(size, one.candidate.options)
        for _ in range(40):
            feed(buffer, wandering.steps)
        report = buffer.memory_report()
        others = size * (8 + 3 * 4)
        expected = report.live_nbytes + report.overhead + others
        assert one.nbytes(size) == pytest.approx(expected, rel=0.1), one.candidate.name


def test_a_codec_that_fails_on_the_data_is_told_and_the_others_are_measured(wandering, install):
    install("fails-dist", "fails", "fake_fails", FORGETS_SOME)
    advice = advise(wandering, codecs=["fails", "gzip/1"], **FEW)
    assert [one.name for one in advice.failed] == ["fails"]
    assert "this stream is not mine" in advice.failed[0].reason
    assert advice.verdict.compress


def test_a_codec_that_fails_on_data_that_was_not_tried_first_is_told(wandering, install):
    """One image of the two hundred, and none of the 48 that are tried on."""
    source = FORGETS_SOME.replace(
        "return bytes(cell[:40])",
        """
            if cell[9] == 77:
                raise ValueError("this image is too bright for me")
            return zlib.compress(cell, 1)""",
    ).replace('raise RuntimeError("this stream is not mine")', "out[:] = zlib.decompress(payload)")
    install("fails-dist", "fails", "fake_fails", source.replace("\n    from", "\n    import zlib\n    from", 1))
    assert not any((step.observations == 77).any() for step in wandering.steps)
    wandering.steps[50].observations[:] = 77
    advice = advise(wandering, codecs=["fails"], **FEW)
    assert {one.name for one in advice.failed} >= {"cells fails"}
    assert "this image is too bright for me" in advice.failed[-1].reason
    assert advice.verdict.compress


def test_the_random_numbers_of_the_caller_are_left_alone(vectors):
    np.random.seed(5)
    expected = np.random.random()
    np.random.seed(5)
    advise(vectors, **FEW)
    assert np.random.random() == expected


def test_json_has_every_figure(wandering):
    advice = advise(wandering, 5000, codecs=["gzip/1"], **FEW)
    content = json.loads(json.dumps(advice.as_json()))
    assert content["planned_transitions"] == 5000
    assert content["recommended"] == advice.verdict.chosen.candidate.name
    assert content["lines"] == advice.lines
    assert {one["name"] for one in content["measured"]} == {one.candidate.name for one in advice.measured}
    sizes = [one["nbytes"] for one in content["measured"]]
    assert sizes == sorted(sizes)
    plain = next(one for one in content["measured"] if one["name"] == PLAIN)
    assert plain["times_smaller"] == plain["add_to_sb3"] == plain["sample_to_sb3"] == 1
    assert content["screened"][0]["codec"] == "gzip/1"


@pytest.mark.parametrize("wrong", [{"transitions": 0}, {"batch_size": -1}, {"rounds": True}])
def test_counts_must_be_counts(vectors, wrong):
    with pytest.raises(ParameterError, match=f"{next(iter(wrong))}.*integer of at least 1"):
        advise(vectors, **wrong)


def test_observations_without_elements_are_no_reason_to_fail(vectors):
    space = spaces.Box(0, 1, (0,), np.float32)
    steps = [
        type(step)(
            step.observations[:, :0],
            step.next_observations[:, :0],
            step.actions,
            step.actions,
            step.rewards,
            step.dones,
            step.infos,
        )
        for step in vectors.steps
    ]
    stream = type(vectors)("nothing", space, vectors.action_space, 2, steps)
    assert not advise(stream, **FEW).verdict.compress

"""Every codec and level is tried; what fails is told."""

import numpy as np
import pytest

from sb3_extra_buffers import codecs
from sb3_extra_buffers.advisor.measurement import screen, specs
from sb3_extra_buffers.codecs import CellSpec, CodecSpec
from sb3_extra_buffers.errors import ParameterError, UnknownPluginError

BROKEN = "raise OSError('libfoo.so.3 is missing')"
FORGETFUL = """
    from sb3_extra_buffers.codecs import ByteCodec, CodecPlugin, hookimpl

    class Forgetful(ByteCodec):
        detects_corruption = False
        library_errors = ()

        def compress(self, cell):
            return b"x"

        def decompress_into(self, payload, out):
            out[:] = bytes(len(out))

    @hookimpl
    def sb3_extra_buffers_codec():
        return CodecPlugin(protocol=1, factory=Forgetful, summary="returns zeros")
"""


def test_all_levels_of_all_codecs_are_tried():
    found, failed = specs()
    assert not failed
    assert [spec.params["level"] for spec in found if spec.name == "gzip"] == list(range(10))
    assert {spec.name for spec in found} == set(codecs.names()) - {"none"}
    assert CodecSpec("rle") in found


def test_of_thousands_of_levels_those_are_tried_that_differ():
    installed = [name for name in codecs.names() if name.startswith("lz4")]
    for name in installed:
        levels = [spec.params["level"] for spec in specs([name])[0]]
        assert 9 in levels
        assert -1 in levels
        assert len(levels) < 40


def test_a_codec_with_a_level_is_tried_at_that_level():
    assert specs(["gzip/3"])[0] == [CodecSpec("gzip", {"level": 3})]


def test_what_was_asked_for_must_exist():
    with pytest.raises(UnknownPluginError, match="gzipp"):
        specs(["gzipp"])
    with pytest.raises(ParameterError, match="level"):
        specs(["gzip/77"])


def test_a_broken_plugin_that_nobody_asked_for_is_a_finding(install):
    install("bad-dist", "bad", "fake_bad", BROKEN)
    found, failed = specs()
    assert CodecSpec("rle") in found
    assert [one.name for one in failed] == ["bad"]
    assert "libfoo.so.3 is missing" in failed[0].reason


def test_sizes_are_those_of_the_payloads():
    rows = np.zeros((8, 1000), np.uint8)
    rows[:, :500] = np.random.default_rng(0).integers(0, 256, (8, 500))
    cell, calls = CellSpec(np.uint8, 1000), []
    found, failed = screen([CodecSpec("gzip", {"level": 6}), CodecSpec("rle")], cell, rows, calls.append)
    assert not failed
    assert calls == [1, 1]
    codec = codecs.bind("gzip/6", cell)
    assert found[0].ratio == rows.nbytes / sum(len(codec.encode(row)) for row in rows)
    assert found[0].seconds > 0


def test_a_codec_that_does_not_return_what_it_was_given_is_a_finding(install):
    install("forget-dist", "forgetful", "fake_forgetful", FORGETFUL)
    rows = np.full((4, 1000), 7, np.uint8)
    found, failed = screen([CodecSpec("forgetful"), CodecSpec("rle")], CellSpec(np.uint8, 1000), rows, lambda _: None)
    assert [one.spec.name for one in found] == ["rle"]
    assert [one.name for one in failed] == ["forgetful"]
    assert "decoding did not return the observation" in failed[0].reason

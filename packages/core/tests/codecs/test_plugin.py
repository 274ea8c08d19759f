"""Binding checks everything before anything is stored."""

import re

import numpy as np
import pytest

from sb3_extra_buffers.codecs import Automatic, CellSpec, Codec, CodecPlugin, CodecSpec, Levels, bind, names, registry
from sb3_extra_buffers.errors import ParameterError

CELL = CellSpec(np.uint8, 100)


def test_every_installed_codec_binds_by_its_bare_name():
    for name in names():
        codec = bind(name, CELL)
        assert isinstance(codec, Codec)
        assert (codec.spec.name, codec.cell) == (name, CELL)


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        ("gzip10", r"codec 'gzip': level=10 is not allowed; levels: 0 to 9 \(default 9\)\."),
        ("gzip-1", r"level=-1 is not allowed; levels: 0 to 9 .*gzip-1 means level -1; gzip/1 is level 1"),
        (CodecSpec("gzip", {"level": True}), "level=True is not allowed; it must be an int; levels: 0 to 9"),
        ("none7", "codec 'none': level=7 is not allowed; it takes no parameters"),
        ("rle5", "codec 'rle': level=5"),
        (CodecSpec("gzip", {"level": "9"}), "level='9'"),
        (CodecSpec("gzip", {"speed": 1}), "speed=1 is not allowed; known parameters: level"),
        ("", "name=''"),
    ],
)
def test_what_a_codec_does_not_take_is_refused_by_name_value_and_range(codec, message):
    with pytest.raises(ParameterError, match=message):
        bind(codec, CELL)


@pytest.mark.parametrize(
    ("name", "level", "hint"),
    [
        ("plain", 16, ""),  # 16 is not taken for -16
        ("with-dash", 16, ""),
        ("plain", -3, " plain-3 means level -3; plain/3 is level 3."),
        ("with-dash", -3, " with-dash/-3 means level -3; with-dash/3 is level 3."),
    ],
)
def test_a_hint_about_the_shorthand_is_true_for_the_name_of_the_codec(name, level, hint):
    ranges = ((-50, -4), (0, 12))
    plugin = CodecPlugin(1, registry.load("none").factory, "x", Levels(0, ranges))
    with pytest.raises(ParameterError) as caught:
        plugin.complete(CodecSpec(name, {"level": level}))
    asked = f"codec {name!r}: level={level} is not allowed; levels: -50 to -4, 0 to 12 (default 0)."
    assert str(caught.value) == asked + hint
    if hint:  # what it names is read so
        first, second = re.findall(r"(\S+) (?:means|is) level", hint)
        parsed = [CodecSpec.parse(text, {name}) for text in (first, second)]
        assert parsed == [CodecSpec(name, {"level": level}), CodecSpec(name, {"level": -level})]


def test_the_spec_of_a_bound_codec_is_complete():
    assert bind("gzip", CELL).spec == CodecSpec("gzip", {"level": 9})
    assert bind(bind("gzip3", CELL).spec, CELL).spec == CodecSpec("gzip", {"level": 3})


def test_a_cell_must_be_a_cell():
    with pytest.raises(ParameterError, match="it must be a CellSpec"):
        bind("rle", (84, 84))


def test_levels_know_their_ranges():
    levels = Levels(default=3, ranges=((-100, -1), (1, 22)))
    assert str(levels) == "-100 to -1, 1 to 22"
    assert all(level in levels for level in (-100, -1, 1, 22))
    assert not any(level in levels for level in (-101, 0, 23, True, 3.0, "3", None))
    assert str(Levels(default=1, ranges=((1, 1),))) == "1"


def test_completing_a_spec_leaves_it_as_it_is():
    plugin = CodecPlugin(1, registry.load("none").factory, "x", Levels(2, ((1, 3),)), {"checksum": False})
    spec = CodecSpec("x", {"checksum": True})
    assert plugin.complete(spec) == CodecSpec("x", {"checksum": True, "level": 2})
    assert spec.params == {"checksum": True}


@pytest.mark.parametrize("declared", [{"decode_cost": 0}, {"decode_cost": True}, {"decode_cost": float("nan")}])
def test_a_cost_of_decoding_must_be_a_positive_number(declared):
    with pytest.raises(ParameterError, match="it must be a positive number"):
        Automatic(**declared)


@pytest.mark.parametrize("levels", [[1, 2], (1.0,), (True,)])
def test_levels_for_the_automatic_choice_are_a_tuple_of_integers(levels):
    with pytest.raises(ParameterError, match="it must be a tuple of integers"):
        Automatic(1.0, levels)

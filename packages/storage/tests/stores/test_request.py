"""What people ask for, in the words of the published package, is read without changing what they hand over."""

import re

import pytest

from sb3_extra_buffers.codecs import CodecSpec
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.stores import parse_request


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


def test_decoding_takes_the_words_of_old_scripts_and_no_others():
    assert parse_request("gzip", None, {"elem_type": "u1", "runs_type": "u2", "arr_configs": {}}) == CodecSpec("gzip")
    with pytest.raises(ParameterError, match=r"decompression_kwargs=\{'foo': 1\} .*arr_configs, elem_type, runs_type"):
        parse_request("gzip", None, {"foo": 1})


def test_what_is_handed_over_is_not_changed():
    kwargs, spec = {"compresslevel": 2, "elem_type": "u1"}, CodecSpec("gzip", {"level": 2})
    parse_request(spec, kwargs, {"elem_type": "u1"})
    assert kwargs == {"compresslevel": 2, "elem_type": "u1"}
    assert spec == CodecSpec("gzip", {"level": 2})


def test_two_levels_are_refused():
    for kwargs in ({"level": 4}, {"compresslevel": 4}):
        with pytest.raises(ParameterError, match=r"'gzip3' asks for another level. Give the level once"):
            parse_request("gzip3", kwargs)


@pytest.mark.parametrize("method", ["", None, 5, ["gzip"]])
def test_what_names_no_codec_is_refused(method):
    with pytest.raises(ParameterError, match=re.escape(f"={method!r} is not allowed")):
        parse_request(method)

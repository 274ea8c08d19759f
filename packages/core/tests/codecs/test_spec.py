"""The shorthand says one thing only, and specs come back from JSON, pickle and their own text."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sb3_extra_buffers.codecs import CodecSpec, parse
from sb3_extra_buffers.errors import ParameterError

KNOWN = ("none", "zstd", "igzip", "lz4-frame", "bz2")


@pytest.mark.parametrize(
    ("text", "name", "level"),
    [
        ("zstd", "zstd", None),
        ("zstd5", "zstd", 5),
        ("zstd-5", "zstd", -5),
        ("zstd/5", "zstd", 5),
        ("zstd/-5", "zstd", -5),
        ("igzip3", "igzip", 3),
        ("lz4-frame", "lz4-frame", None),
        ("lz4-frame/5", "lz4-frame", 5),
        ("lz4-frame/-5", "lz4-frame", -5),
        ("bz2", "bz2", None),
        ("bz2/9", "bz2", 9),
        ("none7", "none", 7),
        ("qoi2", "qoi2", None),
        ("lz4", "lz4", None),
        ("lz4-frame5", "lz4-frame5", None),
        ("a/b/3", "a/b", 3),
    ],
)
def test_the_shorthand(text, name, level):
    spec = CodecSpec.parse(text, KNOWN)
    assert (spec.name, spec.params.get("level")) == (name, level)


@pytest.mark.parametrize(("text", "name", "level"), [("qoi2", "qoi", 2), ("zstd-5", "zstd", -5), ("qoi", "qoi", None)])
def test_without_known_names_the_form_alone_decides(text, name, level):
    spec = CodecSpec.parse(text)
    assert (spec.name, spec.params.get("level")) == (name, level)


@pytest.mark.parametrize("data", [{}, {"params": {}}, {"name": 5}, {"name": "zstd", "level": 3}])
def test_json_that_is_no_spec_is_refused(data):
    with pytest.raises(ParameterError, match="it must look like"):
        parse(data)


@pytest.mark.parametrize("text", ["", "zstd/", "/5", "zstd/abc", "zstd/5.0", "zstd/--5", None, 5, b"zstd"])
def test_what_is_no_shorthand_is_refused(text):
    with pytest.raises(ParameterError, match="name="):
        CodecSpec.parse(text, KNOWN)


names = st.from_regex(r"[a-z][a-z0-9]{0,6}(-[a-z0-9]{1,5})?", fullmatch=True)
levels = st.none() | st.integers(-(10**6), 10**6)


@given(names, levels)
def test_the_text_of_a_spec_parses_to_the_spec(name, level):
    spec = CodecSpec(name, {} if level is None else {"level": level})
    assert CodecSpec.parse(str(spec), {name}) == spec


scalars = st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.none()


@given(names, st.dictionaries(st.text(min_size=1), scalars))
def test_it_survives_json_and_pickle(name, params):
    spec = CodecSpec(name, params)
    assert CodecSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert hash(CodecSpec(name, dict(reversed(params.items())))) == hash(spec)


def test_it_cannot_be_changed_and_does_not_keep_the_callers_dictionary():
    params = {"level": 3}
    spec = CodecSpec("zstd", params)
    params["level"] = 9
    assert spec.params == {"level": 3}
    with pytest.raises(AttributeError):
        spec.name = "lz4"
    with pytest.raises(TypeError):
        spec.params["level"] = 4


def test_text_repr_and_comparison():
    assert str(CodecSpec("zstd", {"level": -5, "checksum": True})) == "zstd/-5(checksum=True)"
    assert str(CodecSpec("zstd", {"level": 3, "checksum": False})) == "zstd/3"
    assert eval(repr(CodecSpec("zstd", {"level": -5}))) == CodecSpec("zstd", {"level": -5})
    assert CodecSpec("zstd") != "zstd"


def test_parse_takes_text_specs_and_json():
    spec = CodecSpec("gzip", {"level": 4})
    assert parse("gzip4") == parse(spec) == parse(spec.to_json()) == spec

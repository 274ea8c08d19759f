"""Rules about what a codec says of itself."""

from __future__ import annotations

import json

import numpy as np

from sb3_extra_buffers.codecs import CODEC_PROTOCOL, CellSpec, Codec, CodecSpec, Levels
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject, as_bytes, decoded, sample
from sb3_extra_buffers.testing.rule import expect, expect_raises

#: Up to this many levels are all tried; of more, those at the ends of each range.
_ALL_LEVELS = 256


@CODEC_RULES.rule(
    "declares-itself", "A codec declares its spec, its cell, a positive size bound and a protocol that is spoken."
)
def declares_itself(subject: CodecSubject) -> None:
    expect(subject.plugin.protocol == CODEC_PROTOCOL, f"it was written for protocol {subject.plugin.protocol}")
    expect(subject.plugin.summary.strip(), "its summary is empty")
    cell = CellSpec(np.float32, 10)
    codec = subject.bind(cell.dtype, cell.count)
    expect(isinstance(codec, Codec), f"{type(codec).__name__} lacks a part of the Codec protocol")
    expect(codec.cell == cell, f"bound to {cell}, it says that its cell is {codec.cell}")
    expect(codec.spec.name == subject.name, f"registered as {subject.name!r}, it calls itself {codec.spec.name!r}")
    expect(isinstance(codec.detects_corruption, bool), "detects_corruption is not a bool")
    bound = codec.max_encoded_nbytes
    expect(isinstance(bound, int) and bound >= 1, f"max_encoded_nbytes is {bound!r}")


@CODEC_RULES.rule("spec-complete", "A codec's spec goes through JSON and binds to a codec that reads its payloads.")
def spec_complete(subject: CodecSubject) -> None:
    codec = subject.bind(np.uint8, 900)
    spec = CodecSpec.from_json(json.loads(json.dumps(codec.spec.to_json())))
    expect(spec == codec.spec, f"{codec.spec!r} came back from JSON as {spec!r}")
    again = subject.plugin.factory(subject.plugin.complete(spec), codec.cell)
    expect(again.spec == codec.spec, f"{codec.spec!r}, bound again, is {again.spec!r}")
    for kind in ("runs", "noise"):
        cell = sample(codec, kind)
        expect((decoded(again, as_bytes(codec.encode(cell))) == cell).all(), "bound again, it decodes something else")


def _documented(levels: Levels) -> list[int]:
    everything = [level for low, high in levels.ranges for level in (low, high)]
    if sum(high - low + 1 for low, high in levels.ranges) <= _ALL_LEVELS:
        everything = [level for low, high in levels.ranges for level in range(low, high + 1)]
    return sorted({*everything, levels.default})


@CODEC_RULES.rule(
    "levels", "Every documented level binds and restores a cell; one past each end raises ParameterError."
)
def all_levels(subject: CodecSubject) -> None:
    levels = subject.plugin.levels
    if levels is None:
        expect_raises(ParameterError, "a level for a codec without levels", subject.bind, level=1)
        return
    for level in _documented(levels):
        codec = subject.bind(np.uint8, 900, level=level)
        cell = sample(codec)
        expect((decoded(codec, codec.encode(cell)) == cell).all(), f"level {level} does not restore a cell")
    for level in {outside for low, high in levels.ranges for outside in (low - 1, high + 1)}:
        if level not in levels:
            expect_raises(ParameterError, f"level {level}", subject.bind, level=level)
    for value in (True, 1.0, "1"):
        expect_raises(ParameterError, f"level {value!r}", subject.bind, level=value)


@CODEC_RULES.rule("parameters", "An unknown parameter, or one of another type, raises ParameterError.")
def parameters(subject: CodecSubject) -> None:
    expect_raises(ParameterError, "an unknown parameter", subject.bind, no_such_parameter=1)
    for name, default in subject.plugin.parameters.items():
        if default is not None:
            expect_raises(ParameterError, f"{name} of another type", subject.bind, **{name: object()})

"""Rules about threads and processes."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from sb3_extra_buffers.codecs import Codec
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject, as_bytes, decoded, sample
from sb3_extra_buffers.testing.processes import attempted_imports, in_forked_child, in_fresh_process
from sb3_extra_buffers.testing.rule import NotApplicable, expect

_HEAVY = ("torch", "stable_baselines3")


def _round_trips(codec: Codec, seeds: range) -> int:
    """How many cells come back wrong."""
    cells = [sample(codec, kind, seed) for seed in seeds for kind in ("runs", "noise")]
    return sum(not (decoded(codec, codec.encode(cell)) == cell).all() for cell in cells)


@CODEC_RULES.rule("threads", "Two threads may use one codec at the same time.")
def threads(subject: CodecSubject) -> None:
    codec = subject.bind(np.uint8, 20_000)
    with ThreadPoolExecutor(2) as pool:
        wrong = sum(pool.map(lambda part: _round_trips(codec, range(part * 100, part * 100 + 40)), range(2)))
    expect(not wrong, f"{wrong} of 160 cells came back wrong")


@CODEC_RULES.rule("fork", "A codec that was bound and used before a fork works in the child and in the parent.")
def fork(subject: CodecSubject) -> None:
    codec = subject.bind(np.uint8, 3000)
    cell = sample(codec)
    payload = as_bytes(codec.encode(cell))

    def in_child() -> None:
        expect((decoded(codec, payload) == cell).all(), "a payload of the parent decodes wrongly in the child")
        expect(not _round_trips(codec, range(3)), "cells come back wrong in the child")

    in_forked_child(in_child)
    expect(not _round_trips(codec, range(3)), "cells come back wrong in the parent")


@CODEC_RULES.rule(
    "pickle", "A codec pickles; the copy has its spec and cell and reads its payloads, also in a new process."
)
def pickling(subject: CodecSubject) -> None:
    if subject.module is None:
        raise NotApplicable("a codec that is not installed cannot be found by another process")
    codec = subject.bind(np.float32, 700)
    cell = sample(codec)
    payload = as_bytes(codec.encode(cell))
    copy = pickle.loads(pickle.dumps(codec))
    expect((copy.spec, copy.cell) == (codec.spec, codec.cell), f"the copy is {copy.spec} for {copy.cell}")
    expect((decoded(copy, payload) == cell).all(), "the copy decodes something else")
    back = in_fresh_process(decoded, codec, payload)
    expect((back == cell).all(), "the copy in a new process decodes something else")


@CODEC_RULES.rule("light-import", "Importing the plugin imports neither torch nor Stable-Baselines3.")
def light_import(subject: CodecSubject) -> None:
    if subject.module is None:
        raise NotApplicable("the codec names no module")
    asked = attempted_imports(subject.module, _HEAVY)
    expect(not asked, f"importing {subject.module} asked for {', '.join(asked)}")

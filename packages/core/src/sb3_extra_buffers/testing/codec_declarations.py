"""Rules for codecs about declarations, frozen payloads, threads and processes."""

from __future__ import annotations

import json
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import perf_counter, sleep
from typing import Any

import numpy as np

from sb3_extra_buffers.codecs import (
    CODEC_PROTOCOL,
    CellSpec,
    Codec,
    CodecSpec,
    ThreadedCodec,
    decode_batch,
    encode_batch,
)
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.memory import Bytes, FlatBytes
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject, as_bytes, cases, decoded, sample
from sb3_extra_buffers.testing.processes import attempted_imports, in_forked_child, in_fresh_process
from sb3_extra_buffers.testing.rule import NotApplicable, expect, expect_raises

#: Up to this many levels are all tried; of more, those at the ends of each range.
_ALL_LEVELS = 256
_HEAVY = ("torch", "stable_baselines3")


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
    batches = [name for name in ("encode_batch", "decode_batch") if hasattr(codec, name)]
    expect(len(batches) != 1, f"of the two methods for batches it has {batches} only")
    share = codec.min_nbytes_per_thread if isinstance(codec, ThreadedCodec) else None
    expect(share is None or (type(share) is int and share >= 1), f"min_nbytes_per_thread is {share!r}")


@CODEC_RULES.rule("spec-complete", "A codec's spec goes through JSON and binds to a codec that reads its payloads.")
def spec_complete(subject: CodecSubject) -> None:
    for codec, _, cell, payload in cases(subject, [(np.uint8, 900)]):
        spec = CodecSpec.from_json(json.loads(json.dumps(codec.spec.to_json())))
        expect(spec == codec.spec, f"{codec.spec!r} came back from JSON as {spec!r}")
        again = subject.plugin.factory(subject.plugin.complete(spec), codec.cell)
        expect(again.spec == codec.spec, f"{codec.spec!r}, bound again, is {again.spec!r}")
        expect((decoded(again, payload) == cell).all(), "bound again, it decodes something else")


@CODEC_RULES.rule(
    "levels", "Every documented level binds and restores a cell; one past each end raises ParameterError."
)
def all_levels(subject: CodecSubject) -> None:
    levels = subject.plugin.levels
    if levels is None:
        expect_raises(ParameterError, "a level for a codec without levels", subject.bind, level=1)
        return
    ranges = [range(low, high + 1) for low, high in levels.ranges]
    is_short = sum(map(len, ranges)) <= _ALL_LEVELS
    documented = {level for part in ranges for level in (part if is_short else (part[0], part[-1]))}
    for level in sorted({*documented, levels.default}):
        codec = subject.bind(np.uint8, 900, level=level)
        cell = sample(codec)
        expect((decoded(codec, codec.encode(cell)) == cell).all(), f"level {level} does not restore a cell")
    for level in {outside for low, high in levels.ranges for outside in (low - 1, high + 1)}:
        if level not in levels:
            expect_raises(ParameterError, f"level {level}", subject.bind, level=level)
    for value in (True, 1.0, "1"):
        expect_raises(ParameterError, f"level {value!r}", subject.bind, level=value)


@CODEC_RULES.rule("automatic", "Levels for the automatic choice are documented levels of the codec.")
def automatic(subject: CodecSubject) -> None:
    if subject.plugin.automatic is None:
        raise NotApplicable("the plugin does not declare automatic")
    for level in subject.plugin.automatic.levels:
        allowed = subject.plugin.levels
        expect(allowed is not None and level in allowed, f"level {level} is not among {allowed or 'no levels'}")


def measure_decode_cost(subject: CodecSubject) -> float:
    """Time to decode a cell as a multiple of the time to copy it: the least of many measurements, on one thread.

    The cells are 32 observations of 28 KB with the structure of Atari frames, decoded as one batch.

    :param subject: measured at the level for observations (``Automatic.levels``)
    """
    levels = subject.plugin.automatic.levels if subject.plugin.automatic is not None else ()
    rows = _frames(32)
    codec = subject.bind(np.uint8, rows.shape[1], **({"level": levels[(len(levels) - 1) // 2]} if levels else {}))
    room, out = np.empty(len(rows) * codec.max_encoded_nbytes, np.uint8), np.empty_like(rows)
    lengths = encode_batch(codec, rows, room)
    source, starts = FlatBytes(room), lengths.cumsum() - lengths
    decoding, copying = [], []
    for _ in range(60):  # in turn, so that both meet the same load of the machine
        begin = perf_counter()
        decode_batch(codec, source, starts, lengths, out, threads=1)
        middle = perf_counter()
        np.copyto(out, rows)
        decoding.append(middle - begin)
        copying.append(perf_counter() - middle)
    return min(decoding) / min(copying)


def _frames(count: int) -> Bytes:
    """Stacks of four blocky images, each with a few moving objects in front of the same background."""
    random = np.random.default_rng(0)
    background = np.kron(random.integers(0, 8, (12, 12), np.uint8) * 30, np.ones((7, 7), np.uint8))
    frames = np.repeat(background[np.newaxis], 4 * count, axis=0)
    for frame in frames:
        for y, x, height, width in random.integers((0, 0, 2, 2), (76, 76, 9, 9), (12, 4)):
            frame[y : y + height, x : x + width] = random.integers(256)
    return np.ascontiguousarray(frames.reshape(count, 4, 84, 84).transpose(0, 2, 3, 1)).reshape(count, -1)


@CODEC_RULES.rule("parameters", "An unknown parameter, or one of another type, raises ParameterError.")
def parameters(subject: CodecSubject) -> None:
    expect_raises(ParameterError, "an unknown parameter", subject.bind, no_such_parameter=1)
    for name, default in subject.plugin.parameters.items():
        if default is not None:
            expect_raises(ParameterError, f"{name} of another type", subject.bind, **{name: object()})


@CODEC_RULES.rule("golden", "Payloads frozen by earlier versions decode to the cells that they were made of.")
def golden(subject: CodecSubject) -> None:
    from sb3_extra_buffers.testing.freeze import read_golden  # Python warns about a module that is imported, then run

    if subject.golden is None:
        raise NotApplicable("no file of frozen payloads was named")
    command = f"python -m sb3_extra_buffers.testing.freeze {subject.name} {subject.golden}"
    expect(subject.golden.exists(), f"{subject.golden} is missing; freeze the payloads once with: {command}")
    entries = read_golden(subject.golden)
    expect(entries, f"{subject.golden} holds no payload")
    for entry in entries:
        codec = subject.plugin.factory(subject.plugin.complete(entry.spec), entry.cell)
        back = decoded(codec, entry.payload).tobytes()
        expect(back == entry.raw, f"{entry.title}: the frozen payload decodes wrongly")
        if subject.frozen_encoding:
            same = as_bytes(codec.encode(entry.raw)) == entry.payload
            expect(same, f"{entry.title}: the cell is encoded to another payload than the frozen one")


def _round_trips(codec: Codec, seeds: range) -> int:
    """How many cells come back wrong."""
    cells = [sample(codec, kind, seed) for seed in seeds for kind in ("runs", "noise")]
    return sum(not (decoded(codec, codec.encode(cell)) == cell).all() for cell in cells)


@CODEC_RULES.rule("threads", "Several threads may use one codec at the same time.")
def threads(subject: CodecSubject) -> None:
    # Large cells give other threads time to wake up while a library works without the interpreter lock. With small
    # ones, threads switch at every line of Python.
    for nbytes, rounds, trace in ((1 << 20, 6, None), (1 << 12, 12, _switch)):
        wrong = _in_threads(subject.bind(np.uint8, nbytes), 4, rounds, trace)
        expect(not wrong, f"{wrong} of {8 * rounds} results for cells of {nbytes} bytes were wrong")


def _switch(_frame: object, _event: str, _argument: object) -> Any:
    sleep(1e-6)
    return _switch


def _in_threads(codec: Codec, count: int, rounds: int, trace: Any) -> int:
    """How many results are wrong if threads encode and decode different cells at the same time."""
    cells = [sample(codec, "noise" if number % 2 else "runs", number) for number in range(count)]
    payloads = [as_bytes(codec.encode(cell)) for cell in cells]
    barrier = Barrier(count)

    def work(number: int) -> int:
        wrong, out, before = 0, np.empty(codec.cell.nbytes, np.uint8), sys.gettrace()
        barrier.wait()
        for _ in range(rounds):
            sys.settrace(trace or before)
            try:
                payload = codec.encode(cells[number])
                codec.decode_into(payloads[number], out)
            finally:
                sys.settrace(before)
            wrong += (as_bytes(payload) != payloads[number]) + (not np.array_equal(out, cells[number]))
        return wrong

    with ThreadPoolExecutor(count) as pool:
        return sum(pool.map(work, range(count)))


@CODEC_RULES.rule("fork", "A codec that was bound and used before a fork works in the child and in the parent.")
def fork(subject: CodecSubject) -> None:
    codec, _, cell, payload = next(cases(subject, [(np.uint8, 3000)]))

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
    codec, _, cell, payload = next(cases(subject, [(np.float32, 700)]))
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

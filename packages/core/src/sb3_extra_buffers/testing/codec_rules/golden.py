"""Rules about payloads that were written long ago."""

from __future__ import annotations

from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject, as_bytes, decoded
from sb3_extra_buffers.testing.golden import read_golden
from sb3_extra_buffers.testing.rule import NotApplicable, expect


@CODEC_RULES.rule("golden", "Payloads frozen by earlier versions decode to the cells that they were made of.")
def golden(subject: CodecSubject) -> None:
    if subject.golden is None:
        raise NotApplicable("no file of frozen payloads was named")
    command = f"python -m sb3_extra_buffers.testing.freeze {subject.name} {subject.golden}"
    expect(subject.golden.exists(), f"{subject.golden} is missing; freeze the payloads once with: {command}")
    entries = read_golden(subject.golden)
    expect(entries, f"{subject.golden} holds no payload")
    for entry in entries:
        codec = subject.plugin.factory(subject.plugin.complete(entry.spec), entry.cell)
        expect(
            decoded(codec, entry.payload).tobytes() == entry.raw, f"{entry.title}: the frozen payload decodes wrongly"
        )
        if subject.frozen_encoding:
            payload = as_bytes(codec.encode(entry.raw))
            expect(
                payload == entry.payload, f"{entry.title}: the cell is encoded to another payload than the frozen one"
            )

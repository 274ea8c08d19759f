"""The codec under test, and how the rules get at it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sb3_extra_buffers.codecs import CellSpec, Codec, CodecPlugin, CodecSpec, parse, registry
from sb3_extra_buffers.memory import Buffer, Bytes
from sb3_extra_buffers.registry import Scalar
from sb3_extra_buffers.testing.content import content
from sb3_extra_buffers.testing.rule import RuleBook


@dataclass(frozen=True)
class CodecSubject:
    """A codec, before it is bound.

    :param name: the name under which it is registered
    :param plugin: what its distribution hands over
    :param params: parameters to test it with
    :param module: the module that its entry point names, or ``None`` for a codec that is not installed
    :param golden: the file with frozen payloads, or ``None`` to skip that rule
    :param frozen_encoding: whether encoding, too, must give the frozen payloads
    """

    name: str
    plugin: CodecPlugin
    params: dict[str, Scalar] = field(default_factory=dict)
    module: str | None = None
    golden: Path | None = None
    frozen_encoding: bool = False

    @classmethod
    def installed(cls, codec: str, params: Mapping[str, Scalar] | None = None, **options: Any) -> CodecSubject:
        """The codec that is registered under a name.

        :param codec: its name, or a shorthand such as ``"zstd-5"``, which sets its level
        :param params: further parameters to test it with
        :param options: ``golden`` and ``frozen_encoding``
        """
        spec = parse(codec)
        plugin = registry.load(spec.name)
        module = registry.offers()[spec.name][0].entry_point.module
        return cls(spec.name, plugin, {**spec.params, **(params or {})}, module, **options)

    def bind(self, dtype: Any = np.uint8, count: int = 1000, **params: Scalar) -> Codec:
        """Bind it to a cell."""
        spec = CodecSpec(self.name, {**self.params, **params})
        return self.plugin.factory(self.plugin.complete(spec), CellSpec(dtype, count))

    def __str__(self) -> str:
        return str(CodecSpec(self.name, self.params))


#: The contract of a codec.
CODEC_RULES: RuleBook[CodecSubject] = RuleBook()


def sample(codec: Codec, kind: str = "runs", seed: int = 0) -> Bytes:
    """A cell of the given kind of content for a bound codec."""
    return content(kind, codec.cell, seed)


def cases(
    subject: CodecSubject, cells: Iterable[tuple[Any, int]], kinds: Iterable[str] = ("runs", "noise"), seed: int = 0
) -> Iterator[tuple[Codec, str, Bytes, bytes]]:
    """For each dtype and count, and each kind of content: the codec, the kind, a cell and its payload."""
    for dtype, count in cells:
        codec = subject.bind(dtype, count)
        for kind in kinds:
            cell = sample(codec, kind, seed)
            yield codec, kind, cell, as_bytes(codec.encode(cell))


def as_bytes(payload: Buffer) -> bytes:
    """An independent copy of a payload."""
    return np.frombuffer(payload, np.uint8).tobytes() if len(payload) else b""


def decoded(codec: Codec, payload: Buffer) -> Bytes:
    """The cell of a payload, in memory of its own."""
    out = np.full(codec.cell.nbytes, 0xA5, np.uint8)
    codec.decode_into(payload, out)
    return out

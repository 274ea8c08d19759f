"""What people type for a codec."""

from __future__ import annotations

from sb3_extra_buffers.codecs import CodecSpec


def shorthand(spec: CodecSpec) -> str:
    """Name and level, as ``--codecs`` takes them; the other parameters of a complete spec are left out.

    :param spec: as typed, or complete, as a bound codec has it
    """
    return str(CodecSpec(spec.name, {name: value for name, value in spec.params.items() if name == "level"}))

"""Codec plugins: what a distribution declares, and how a name becomes a codec that is ready for use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from sb3_extra_buffers.codecs.protocol import CellSpec, Codec, CodecSpec
from sb3_extra_buffers.errors import ExtraBuffersError, ParameterError, PluginLoadError, PluginProtocolError
from sb3_extra_buffers.registry import PluginKind, Registry, Scalar, complete_parameters
from sb3_extra_buffers.registry.homes import CODEC_HOMES

#: The version of the codec contract that this core speaks. Raised only when existing codecs would break.
CODEC_PROTOCOL = 1
#: How a codec is named: the shorthand (``"zstd-5"``), a spec, or the JSON form of one.
CodecLike = Union[str, CodecSpec, "Mapping[str, Any]"]


@dataclass(frozen=True)
class Levels:
    """The compression levels that a codec takes.

    :param default: the level when none is given
    :param ranges: inclusive ranges of allowed levels, in ascending order
    """

    default: int
    ranges: tuple[tuple[int, int], ...]

    def __contains__(self, level: object) -> bool:
        return type(level) is int and any(low <= level <= high for low, high in self.ranges)

    def __str__(self) -> str:
        return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in self.ranges)


@dataclass(frozen=True)
class Automatic:
    """What the automatic choice of a codec (``compression_method="auto"``) needs to know about this one.

    The numbers are declared, not measured when a buffer is created, so the choice is the same on every machine. The
    conformance kit measures ``decode_cost`` and warns if the declaration is off by more than a factor of three.

    :param decode_cost: time to decode a cell, as a multiple of the time to copy as many bytes
    :param levels: levels to try, fastest first; empty for a codec without levels. The first is used for small irregular
        payloads (patches of frames), the middle one for whole observations, the last if memory matters most
    :param general: whether it suits most content. A codec for special content is only chosen after it was seen, and
        never for patches of frames
    :param call_cost: time to decode even the smallest payload, in bytes that could be copied meanwhile. The default is
        that of a call from Python that sets up a decoder; a compiled loop takes a tenth
    """

    decode_cost: float
    levels: tuple[int, ...] = ()
    general: bool = True
    call_cost: float = 80_000

    def __post_init__(self) -> None:
        for name, cost in (("decode_cost", self.decode_cost), ("call_cost", self.call_cost)):
            if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0 < cost < math.inf:
                raise ParameterError("Automatic", name, cost, "it must be a positive number")
        if not isinstance(self.levels, tuple) or not all(type(level) is int for level in self.levels):
            raise ParameterError("Automatic", "levels", self.levels, "it must be a tuple of integers")


@dataclass(frozen=True)
class CodecPlugin:
    """A codec as its distribution describes it.

    :param protocol: the contract that the codec was written against, as a literal number (today: 1)
    :param factory: called as ``factory(spec, cell)`` with a spec in which every parameter has a checked value
    :param summary: one line for listings
    :param levels: the allowed levels, or ``None`` for a codec without levels
    :param parameters: further parameters with their defaults; the type of the default is the type of the parameter
    :param automatic: cost and levels for the automatic choice; ``None``: the codec is never chosen automatically
    :param identity: whether payloads equal their cells, so that a store may keep cells without a codec
    """

    protocol: int
    factory: Callable[[CodecSpec, CellSpec], Codec]
    summary: str
    levels: Levels | None = None
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    automatic: Automatic | None = None
    identity: bool = False

    def complete(self, spec: CodecSpec) -> CodecSpec:
        """Check every parameter of ``spec`` and fill in what was left out.

        :raise ParameterError: for a level out of range, an unknown parameter or one of another type
        """
        owner, defaults = f"codec {spec.name!r}", dict(self.parameters)
        if self.levels is not None:
            defaults["level"] = self.levels.default
            self._check_level(owner, spec)
        return CodecSpec(spec.name, complete_parameters(owner, spec.params, defaults))

    def _check_level(self, owner: str, spec: CodecSpec) -> None:
        assert self.levels is not None
        level = spec.params.get("level", self.levels.default)
        if level in self.levels:
            return
        allowed, hint = f"levels: {self.levels} (default {self.levels.default})", ""
        if type(level) is not int:
            allowed = f"it must be an int; {allowed}"
        elif level < 0 and -level in self.levels:  # the dash of gzip-1 was meant to separate
            hint = f"{spec.name}{'' if spec.name.isalpha() else '/'}{level} means level {level}; "
            hint += f"{spec.name}/{-level} is level {-level}."
        raise ParameterError(owner, "level", level, allowed, hint)


registry: Registry[CodecPlugin] = Registry(
    PluginKind(
        label="codec",
        group="sb3_extra_buffers.codecs",
        hook="sb3_extra_buffers_codec",
        plugin_type=CodecPlugin,
        protocol=CODEC_PROTOCOL,
        homes=CODEC_HOMES,
    )
)


names = registry.names


def parse(codec: CodecLike) -> CodecSpec:
    """Parse the name of a codec, without importing it and without checking that it is installed."""
    if isinstance(codec, CodecSpec):
        return codec
    if isinstance(codec, Mapping):
        return CodecSpec.from_json(codec)
    # Names that are not installed count too: the error for zstd-5 must say that zstd is missing.
    return CodecSpec.parse(codec, {*names(), *registry.kind.homes})


def bind(codec: CodecLike, cell: CellSpec) -> Codec:
    """Load the codec's plugin, check its parameters and make it ready for cells of one kind.

    Levels are checked, contexts are created and kernels are compiled here. Bind before you fork.

    :param codec: ``"zstd-5"``, ``"lz4-frame/3"``, ``"rle"``, or a :class:`CodecSpec`
    :param cell: dtype and element count of the cells
    :return: a codec for these cells
    """
    if not isinstance(cell, CellSpec):
        raise ParameterError("bind", "cell", cell, "it must be a CellSpec(dtype, count)")
    spec = parse(codec)
    plugin = registry.load(spec.name)
    complete, offer = plugin.complete(spec), registry.offers()[spec.name][0]
    try:
        bound = plugin.factory(complete, cell)
    except (ExtraBuffersError, MemoryError):
        raise
    except Exception as cause:
        text = f"binding {complete} to {cell} raised {type(cause).__name__}: {cause}"
        raise PluginLoadError("codec", spec.name, str(offer), text) from cause
    if not isinstance(bound, Codec):
        missing = sorted(part for part in _CONTRACT if not hasattr(bound, part))
        found = f"a {type(bound).__name__} without {', '.join(missing)}"
        raise PluginProtocolError("codec", spec.name, str(offer), found, "an object that fulfils the Codec protocol")
    return bound


# Pickled codecs name the public module, so that private ones can be renamed.
bind.__module__ = "sb3_extra_buffers.codecs"

_CONTRACT = ("spec", "cell", "max_encoded_nbytes", "detects_corruption", "encode", "decode_into")

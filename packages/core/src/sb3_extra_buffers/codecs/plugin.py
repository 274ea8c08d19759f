"""What a codec distribution hands over when its name is used for the first time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sb3_extra_buffers.codecs.cell import CellSpec
from sb3_extra_buffers.codecs.protocol import Codec
from sb3_extra_buffers.codecs.spec import CodecSpec
from sb3_extra_buffers.errors import ParameterError
from sb3_extra_buffers.registry import Scalar, complete_parameters, hookspec

#: The version of the codec contract that this core speaks. Raised only when existing codecs would break.
CODEC_PROTOCOL = 1


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
    """

    decode_cost: float
    levels: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        cost = self.decode_cost
        if isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0 < cost < math.inf:
            raise ParameterError("Automatic", "decode_cost", cost, "it must be a positive number")
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
    """

    protocol: int
    factory: Callable[[CodecSpec, CellSpec], Codec]
    summary: str
    levels: Levels | None = None
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    automatic: Automatic | None = None

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
        elif -level in self.levels:
            hint = f"«{spec.name}{level}» reads as level {level}; {spec.name}/{-level} is level {-level}."
        raise ParameterError(owner, "level", level, allowed, hint)


class CodecHooks:
    """The hook of a codec plugin."""

    @hookspec(historic=True)
    def sb3_extra_buffers_codec(self) -> CodecPlugin:  # type: ignore[empty-body]
        """Return the codec that this module offers. One module, one codec, one entry point."""

"""``prefer``: points on the curve between speed and memory, for frames."""

from __future__ import annotations

from dataclasses import dataclass

from sb3_extra_buffers.codecs import CodecSpec, names
from sb3_extra_buffers.errors import ParameterError

SPEED, BALANCED, MEMORY = "speed", "balanced", "memory"

# Codecs in the order of preference; the first that is installed is taken, and the last always is.

_WITHOUT_ZSTD = (
    CodecSpec("lz4-block", {"level": 0}),
    CodecSpec("igzip", {"level": 1}),
    CodecSpec("gzip", {"level": 1}),
)
#: For observations. Of images, level 1 of zstd makes half of what its fast levels make, in the same time.
GENERAL = (CodecSpec("zstd", {"level": 1}), *_WITHOUT_ZSTD)
#: For patches, which are small and irregular.
QUICK = (CodecSpec("zstd", {"level": -3}), *_WITHOUT_ZSTD)
_STRONG = (CodecSpec("zstd", {"level": 6}), CodecSpec("gzip", {"level": 6}))


@dataclass(frozen=True)
class Preference:
    """How frames are stored.

    :param chunk: how many frames are stored, and read, together
    :param codecs: what to compress every chunk with; empty for those only that patches do not make small
    :param fallback: what to compress these with; empty leaves them as they are
    """

    chunk: int
    codecs: tuple[CodecSpec, ...] = ()
    fallback: tuple[CodecSpec, ...] = QUICK

    @property
    def codec(self) -> CodecSpec | None:
        """The codec for every chunk."""
        return first_installed(self.codecs) if self.codecs else None


PREFERENCES = {SPEED: Preference(16), BALANCED: Preference(16, QUICK), MEMORY: Preference(64, _STRONG)}


def preference(owner: str, name: str) -> Preference:
    """What a word of the user stands for."""
    if name not in PREFERENCES:
        raise ParameterError(owner, "prefer", name, f"it must be one of: {', '.join(PREFERENCES)}")
    return PREFERENCES[name]


def first_installed(codecs: tuple[CodecSpec, ...]) -> CodecSpec:
    """The first of these codecs that can be used."""
    installed = set(names())
    return next(spec for spec in codecs if spec.name in installed)

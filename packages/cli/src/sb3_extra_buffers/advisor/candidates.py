"""What is tried in a buffer: ways to store observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sb3_extra_buffers.advisor.screening import Screened
from sb3_extra_buffers.advisor.stream import Stream
from sb3_extra_buffers.compressed.options import CELLS, FRAMES, StorageOptions
from sb3_extra_buffers.stores import AUTO, PREFERENCES, SPEED

#: Stable-Baselines3's own buffer among the ways.
PLAIN = "SB3"


@dataclass(frozen=True)
class Candidate:
    """A way to store observations.

    :param name: what it is called in tables
    :param options: arguments of the buffer, as a user would write them
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether it is Stable-Baselines3's own buffer."""
        return self.name == PLAIN


def candidates(stream: Stream, finalists: Sequence[Screened]) -> list[Candidate]:
    """Stable-Baselines3's buffer, what ``"auto"`` does, every preference for frames, and codecs in both layouts.

    :param stream: what is to be stored
    :param finalists: codecs that are worth it
    """
    frames = stores_frames(stream)
    found = [Candidate(PLAIN), Candidate(AUTO)]
    if frames:
        found += [Candidate(f"{FRAMES} {name}", {"prefer": name}) for name in PREFERENCES if name != SPEED]
    for one in finalists:
        if frames:
            found.append(Candidate(f"{FRAMES} {one.spec}", {"compression_method": str(one.spec)}))
        layout = {"layout": CELLS} if frames else {}
        found.append(Candidate(f"{CELLS} {one.spec}", {"compression_method": str(one.spec), **layout}))
    return found


def stores_frames(stream: Stream) -> bool:
    """Whether ``layout="auto"`` stores observations of some key as frames."""
    options, rows = StorageOptions(), len(stream.steps)
    return any(options.wants_frames(space.shape or (), space.dtype, None, rows) for space in stream.spaces.values())  # type: ignore[arg-type]

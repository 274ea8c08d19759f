"""Everything that is attacked, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec

from scripts.fuzzing.target import Target

#: For each word that names begin with: who makes these targets, and what that needs. Imported when they are asked for:
#: most need a small part of what others load for seconds.
_KINDS = {
    "codec": ("codec_targets", "sb3_extra_buffers.codecs"),
    "frames": ("frame_targets", "sb3_extra_buffers.frames"),
    "file": ("file_targets", "sb3_extra_buffers.checkpoints"),
    "recording": ("recording_targets", "sb3_extra_buffers.recording"),
    "checkpoint": ("checkpoint_targets", "stable_baselines3"),
}
#: Whose names begin with other words.
_OTHERS = "file"


def all_targets() -> dict[str, Target]:
    """Every target for which everything is installed."""
    return {target.name: target for word in _KINDS for target in _made(word)}


def target_named(name: str) -> Target:
    """One target."""
    word = name.partition(" ")[0]
    return next(target for target in _made(word if word in _KINDS else _OTHERS) if target.name == name)


def _made(word: str) -> Iterable[Target]:
    module, needed = _KINDS[word]
    if find_spec(needed) is None:
        return ()
    make: Callable[[], Iterable[Target]] = getattr(import_module(f"scripts.fuzzing.{module}"), module)
    return make()

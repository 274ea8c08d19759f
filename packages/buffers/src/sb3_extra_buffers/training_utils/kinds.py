"""What can be filled, and how to tell."""

from __future__ import annotations

import enum
import inspect
from typing import Any, Protocol

from numpy.typing import NDArray

from sb3_extra_buffers.errors import ParameterError


class ReplayLike(Protocol):
    """A buffer for transitions, such as ``ReplayBuffer`` and its relatives."""

    n_envs: int

    def add(
        self,
        obs: Any,
        next_obs: Any,
        action: NDArray[Any],
        reward: NDArray[Any],
        done: NDArray[Any],
        infos: list[dict[str, Any]],
    ) -> Any: ...


class RecordLike(Protocol):
    """A recording of one stream of frames, such as the ``RecordBuffer`` of ``sb3_extra_buffers.recording``."""

    def add(self, frame: Any, reward: Any, action: Any, features: Any = None, *, done: bool = False) -> Any: ...


class Kind(enum.Enum):
    """What the ``add`` of a buffer takes."""

    REPLAY = "next_obs"
    RECORD = "frame"


def as_list(buffer: Any) -> list[Any]:
    """None, one or several buffers, as a list."""
    # Recordings can be iterated, too: over their steps.
    if buffer is None or hasattr(buffer, "add"):
        return [] if buffer is None else [buffer]
    try:
        return list(buffer)
    except TypeError:
        return [buffer]


def kind_of(buffer: Any) -> Kind:
    """Ask ``add`` what it takes: whoever takes the same can be filled, whatever its class."""
    try:
        names = list(inspect.signature(buffer.add).parameters)
    except (AttributeError, TypeError, ValueError):  # there is no add, or one that cannot tell, as that of a set
        names = []
    for kind in Kind:
        if kind.value in names:
            return kind
    hint = ""
    if "episode_start" in names:
        hint = (
            "A rollout needs values and probabilities of the policy that is trained; to fill several rollout buffers "
            "with one stream, train with vec_buf.DummyVecRolloutBuffer."
        )
    allowed = "it must be a replay buffer, a record buffer or a list of such"
    raise ParameterError("eval_model", "buffer", type(buffer).__name__, allowed, hint)

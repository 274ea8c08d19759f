"""``Asked``: what somebody said who made a recording, and what its steps do not tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Asked:
    """What was asked for, so that a buffer that is made of a file behaves like the one that was saved.

    :param channels: where frames that are added have their channels
    :param action_dtype: of the actions; ``None`` if the first one decided
    :param action_shape: of one action; ``None`` if the first one decided
    """

    channels: str = "auto"
    action_dtype: np.dtype[Any] | None = None
    action_shape: tuple[int, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """As a file says it."""
        dtype = None if self.action_dtype is None else self.action_dtype.name
        shape = None if self.action_shape is None else list(self.action_shape)
        return {"channels": self.channels, "action_dtype": dtype, "action_shape": shape}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Asked:
        """What a file said; it was checked."""
        dtype, shape = said["action_dtype"], said["action_shape"]
        return cls(
            said["channels"],
            None if dtype is None else np.dtype(dtype),
            None if shape is None else tuple(shape),
        )

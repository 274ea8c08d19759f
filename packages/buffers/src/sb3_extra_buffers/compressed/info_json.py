"""Info dictionaries as JSON, for buffers that keep them."""

from __future__ import annotations

import json
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import State, StateError
from sb3_extra_buffers.compressed.argument_json import from_json
from sb3_extra_buffers.compressed.exact_json import to_exact_json


def infos_state(owner: str, infos: NDArray[Any]) -> State:
    """All dictionaries, a line for each.

    :param owner: the buffer's class, for the error about what would not come back as it is
    :param infos: dictionaries
    """
    lines = (json.dumps(to_exact_json(owner, "infos", info)) if info else "" for info in infos.reshape(-1).tolist())
    return State({}, {"lines": np.frombuffer("\n".join(lines).encode(), np.uint8)})


def infos_from(state: State, shape: tuple[int, ...]) -> NDArray[Any]:
    """Rebuild what :func:`infos_state` wrote."""
    lines = state.array("lines", np.uint8, None).tobytes().decode().split("\n")
    infos = [from_json(json.loads(line)) if line else {} for line in lines]
    if len(infos) != prod(shape) or not all(type(info) is dict for info in infos):
        raise StateError(f"there are {len(lines)} infos, or some are no dictionaries")
    return np.array(infos, dtype=object).reshape(shape)

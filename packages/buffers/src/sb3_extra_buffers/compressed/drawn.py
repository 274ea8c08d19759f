"""``Drawn``: a batch that is drawn, and perhaps read, before somebody asks for it."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sb3_extra_buffers.checkpoints import State
from sb3_extra_buffers.heaps.state import within

#: Observations and next observations, by key.
Pairs = dict[str, list[NDArray[Any]]]
_ARRAYS = ("cells", "actions", "rewards", "dones")


@dataclass(eq=False)
class Drawn:
    """Transitions that were drawn, as they were then."""

    cells: NDArray[np.int64]
    actions: NDArray[Any]
    rewards: NDArray[Any]
    dones: NDArray[Any]
    #: What is read, or is being read; ``None`` if nobody has begun.
    observations: Pairs | Future[Pairs] | None = None

    def settled(self) -> Pairs | None:
        """What is read, once it is. What could not be read is tried again by who gets this."""
        found = self.observations
        if isinstance(found, Future):
            return None if found.exception() is not None else found.result()
        return found

    def __getstate__(self) -> dict[str, Any]:
        # Others may have been written over what was drawn, so what was read goes along.
        return {**self.__dict__, "observations": self.settled()}


def drawn_state(drawn: Drawn) -> State:
    """What was drawn, and what was read of it."""
    found = drawn.settled()
    state = State({"is_read": found is not None}, {name: getattr(drawn, name) for name in _ARRAYS})
    for number, pair in enumerate((found or {}).values()):
        for plane, part in enumerate(pair):
            state.arrays[f"{number}.{plane}"] = _on_host(part)
    return state


def drawn_from(buffer: Any, state: State) -> Drawn:
    """What another buffer had drawn.

    :param buffer: the one that shall hand it out
    :param state: from :func:`drawn_state`
    """
    cells = state.array("cells", np.int64, None)
    within("cells", cells, 0, buffer.buffer_size * buffer.n_envs - 1)
    count = len(cells)
    actions = state.array("actions", buffer.actions.dtype, count, buffer.action_dim)
    rewards, dones = (state.array(name, buffer.rewards.dtype, count, 1) for name in ("rewards", "dones"))
    drawn = Drawn(cells, actions, rewards, dones)
    if state.fact("is_read", bool):
        pairs: Pairs = {}
        for number, (key, array) in enumerate(buffer._storage.observations.items()):
            shape = count, *array.shape[2:]
            pairs[key] = [state.array(f"{number}.{plane}", array.dtype, *shape) for plane in (0, 1)]
        drawn.observations = pairs
    return drawn


def _on_host(part: Any) -> Any:
    return part if isinstance(part, np.ndarray) else part.detach().cpu().numpy()

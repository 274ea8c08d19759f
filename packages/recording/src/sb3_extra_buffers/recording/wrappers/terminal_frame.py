"""``TerminalFrame``: what an environment looked like when the episode was over."""

from __future__ import annotations

from typing import Any

import gymnasium

#: Where it is found in ``info``.
TERMINAL_FRAME = "terminal_frame"


class TerminalFrame(gymnasium.Wrapper[Any, Any, Any, Any]):
    """
    Put a picture of the last state of an episode into ``info["terminal_frame"]``.

    A vectorized environment begins the next episode at once, so nobody could take that picture later. ``VecRecord``
    needs it to record what environments show. Hand it to ``make_vec_env`` as ``wrapper_class``.

    :param env: the environment, made with ``render_mode="rgb_array"``
    """

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Do something, and take a picture if it was the last."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info[TERMINAL_FRAME] = self.env.render()
        return observation, reward, terminated, truncated, info

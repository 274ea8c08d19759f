"""Algorithms of Stable-Baselines3 with prioritized replay."""

from __future__ import annotations

from stable_baselines3 import DDPG, DQN, SAC, TD3

from sb3_extra_buffers.prioritized.mixin import PrioritizedReplay


class PrioritizedDQN(PrioritizedReplay, DQN):
    """``DQN`` with prioritized replay. Takes the arguments of ``DQN``; ``replay_buffer_class`` is a compressed,
    prioritized buffer unless given, and ``replay_buffer_kwargs`` may have ``alpha``, ``beta`` and so on.
    """


class PrioritizedSAC(PrioritizedReplay, SAC):
    """``SAC`` with prioritized replay. See :class:`PrioritizedDQN`."""


class PrioritizedTD3(PrioritizedReplay, TD3):
    """``TD3`` with prioritized replay. See :class:`PrioritizedDQN`."""


class PrioritizedDDPG(PrioritizedReplay, DDPG):
    """``DDPG`` with prioritized replay. See :class:`PrioritizedDQN`."""

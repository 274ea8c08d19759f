"""Algorithms of sb3-contrib with prioritized replay."""

from __future__ import annotations

from sb3_contrib import QRDQN, TQC, CrossQ

from sb3_extra_buffers.prioritized.mixin import PrioritizedReplay


class PrioritizedQRDQN(PrioritizedReplay, QRDQN):
    """``QRDQN`` with prioritized replay. See :class:`PrioritizedDQN`."""


class PrioritizedTQC(PrioritizedReplay, TQC):
    """``TQC`` with prioritized replay. See :class:`PrioritizedDQN`."""


class PrioritizedCrossQ(PrioritizedReplay, CrossQ):
    """``CrossQ`` with prioritized replay. See :class:`PrioritizedDQN`."""

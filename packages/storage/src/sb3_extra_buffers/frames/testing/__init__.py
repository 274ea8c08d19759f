"""The conformance kit for frame kernels."""

from __future__ import annotations

from typing import ClassVar

import pytest

from sb3_extra_buffers.frames.testing.rules import KERNEL_RULES
from sb3_extra_buffers.frames.testing.subject import KernelSubject
from sb3_extra_buffers.testing.conformance import Conformance
from sb3_extra_buffers.testing.rule import Rule

__all__ = ["KERNEL_RULES", "KernelConformance", "KernelSubject"]


class KernelConformance(Conformance):
    """Holds installed frame kernels to every rule of the contract.

    .. code-block:: python

        class TestMine(KernelConformance):
            kernels = "mine"
    """

    kernels: ClassVar[str]

    @pytest.mark.parametrize("rule", KERNEL_RULES, ids=lambda rule: rule.id)
    def test_rule(self, rule: Rule[KernelSubject]) -> None:
        self._verify(rule, KernelSubject(self.kernels))

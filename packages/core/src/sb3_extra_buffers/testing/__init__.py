"""The conformance kit: the contracts of codecs, heaps and frame kernels as tests for everyone who writes one.

A test file of a codec distribution, complete::

    from sb3_extra_buffers.testing import CodecConformance

    class TestBz2(CodecConformance):
        codec = "bz2"

Each rule is one sentence with an id; a failing test prints it. :data:`CODEC_RULES`, :data:`HEAP_RULES` and
:data:`KERNEL_RULES` list them, and ``rule.verify(subject)`` checks one without pytest.
"""

from __future__ import annotations

from typing import Any

from sb3_extra_buffers.errors import MissingExtraError
from sb3_extra_buffers.testing.codec_declarations import measure_decode_cost
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject
from sb3_extra_buffers.testing.heap_subject import HEAP_RULES, HeapSubject
from sb3_extra_buffers.testing.rule import BrokenRule, NotApplicable, Rule, RuleBook

try:
    from sb3_extra_buffers.testing.conformance import CodecConformance, DecodeCostWarning, HeapConformance
except ModuleNotFoundError as error:
    if error.name != "pytest":
        raise
    raise MissingExtraError("sb3_extra_buffers.testing", "pytest", "testing", "sb3-extra-buffers-core") from error

__all__ = [
    "CODEC_RULES",
    "HEAP_RULES",
    "KERNEL_RULES",
    "BrokenRule",
    "CodecConformance",
    "CodecSubject",
    "DecodeCostWarning",
    "HeapConformance",
    "HeapSubject",
    "KernelConformance",
    "KernelSubject",
    "NotApplicable",
    "Rule",
    "RuleBook",
    "measure_decode_cost",
]

#: The kit for frame kernels is part of the distribution that defines them.
_FRAME_KERNELS = ("KERNEL_RULES", "KernelConformance", "KernelSubject")


def __getattr__(name: str) -> Any:
    if name not in _FRAME_KERNELS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from sb3_extra_buffers.frames import testing
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{__name__}.{name}", "sb3-extra-buffers-storage", "") from error
    return getattr(testing, name)

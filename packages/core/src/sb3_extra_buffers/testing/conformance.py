"""The kit as pytest sees it: subclass, name the codec or heap, and inherit a test for every rule."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sb3_extra_buffers.registry import Scalar
from sb3_extra_buffers.testing.codec_declarations import measure_decode_cost
from sb3_extra_buffers.testing.codec_subject import CODEC_RULES, CodecSubject
from sb3_extra_buffers.testing.heap_subject import HEAP_RULES, HeapSubject
from sb3_extra_buffers.testing.rule import NotApplicable, Rule

# Importing them enters their rules.
for _kind in ("codec_rules", "heap_capabilities", "heap_rules"):
    import_module(f"sb3_extra_buffers.testing.{_kind}")
#: A declared cost of decoding may be off by this factor without a warning.
_TOLERANCE = 3


class DecodeCostWarning(UserWarning):
    """The declared cost of decoding is far from the measured one."""


class Conformance:
    """What all kits share: one test per rule, and no way to lose one unnoticed."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Looked up, not searched in vars(cls): a mixin could replace it as well.
        if getattr(cls, "test_rule").__module__ not in (__name__, "sb3_extra_buffers.frames.testing"):  # noqa: B009
            raise TypeError(f"{cls.__name__} overrides test_rule; a subclass may add tests, but not replace the kit's")

    @staticmethod
    def _verify(rule: Rule[Any], subject: Any) -> None:
        __tracebackhide__ = True
        try:
            rule.verify(subject)
        except NotApplicable as reason:
            pytest.skip(f"[{rule.id}] does not apply: {reason}")


class CodecConformance(Conformance):
    """Holds an installed codec to every rule of the contract.

    .. code-block:: python

        class TestBz2(CodecConformance):
            codec = "bz2"
            golden = Path(__file__).parent / "golden" / "bz2.json"

    ``params`` sets parameters besides the level. ``frozen_encoding`` says that equal cells must give the frozen
    payloads in every version.
    """

    codec: ClassVar[str]
    params: ClassVar[dict[str, Scalar]] = {}
    golden: ClassVar[Path | None] = None
    frozen_encoding: ClassVar[bool] = False

    @pytest.mark.parametrize("rule", CODEC_RULES, ids=lambda rule: rule.id)
    def test_rule(self, rule: Rule[CodecSubject]) -> None:
        options = {"golden": self.golden, "frozen_encoding": self.frozen_encoding}
        self._verify(rule, CodecSubject.installed(self.codec, self.params, **options))

    # Measurements depend on the machine: this warns and never fails, also where warnings are errors.
    @pytest.mark.filterwarnings("always::sb3_extra_buffers.testing.DecodeCostWarning")
    def test_declared_decode_cost(self) -> None:
        subject = CodecSubject.installed(self.codec, self.params)
        if subject.plugin.automatic is None:
            pytest.skip("the plugin does not declare automatic")
        declared, measured = subject.plugin.automatic.decode_cost, measure_decode_cost(subject)
        if not 1 / _TOLERANCE < declared / measured < _TOLERANCE:
            text = f"{subject} declares decode_cost={declared:g}, measured here: {measured:.3g}"
            warnings.warn(DecodeCostWarning(f"{text}. Measure it on an idle machine."), stacklevel=1)


class HeapConformance(Conformance):
    """Holds an installed heap to every rule of the contract.

    .. code-block:: python

        class TestRing(HeapConformance):
            heap = "ring"
            parameters = {"capacity": 1 << 22}
    """

    heap: ClassVar[str]
    parameters: ClassVar[dict[str, Scalar]] = {}

    @pytest.mark.parametrize("rule", HEAP_RULES, ids=lambda rule: rule.id)
    def test_rule(self, rule: Rule[HeapSubject]) -> None:
        self._verify(rule, HeapSubject.installed(self.heap, self.parameters))

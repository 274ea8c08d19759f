"""The conformance kit for device codecs: our codecs pass, and lying codecs break exactly the rules that they name."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch as th

from sb3_extra_buffers.codecs import names as host_names
from sb3_extra_buffers.errors import DeviceError, PayloadError
from sb3_extra_buffers.gpu_buffers.codecs import DeviceCodecPlugin
from sb3_extra_buffers.gpu_buffers.testing import DEVICE_CODEC_RULES, DeviceCodecConformance, DeviceCodecSubject
from sb3_extra_buffers.testing import BrokenRule, NotApplicable
from sb3_extra_buffers.testing.processes import run_python


class TestNone(DeviceCodecConformance):
    codec = "none"


class TestRle(DeviceCodecConformance):
    codec = "rle"


@pytest.mark.skipif("rle-jit" not in host_names(), reason="rle-jit is not installed")
class TestRleJit(DeviceCodecConformance):
    codec = "rle-jit"


INTERPRETED = """
from sb3_extra_buffers.gpu_buffers.testing import DEVICE_CODEC_RULES, DeviceCodecSubject
import sys

subject = DeviceCodecSubject.installed("rle")
for rule in DEVICE_CODEC_RULES:
    rule.verify(subject)
print(len(DEVICE_CODEC_RULES), "rules", "with" if "triton" in sys.modules else "without", "kernels")
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")
def test_the_interpreted_kernels_pass(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert f"{len(DEVICE_CODEC_RULES)} rules with kernels" in run_python(INTERPRETED)


class Honest:
    """The codec ``none`` on a device, as simple as possible."""

    breaks: frozenset[str] = frozenset()

    def __init__(self, codec, device):
        self.nbytes = codec.cell.nbytes

    def check(self, lengths):
        wrong = np.flatnonzero(lengths != self.nbytes)
        if len(wrong):
            raise PayloadError("none", int(lengths[wrong[0]]), f"a cell has {self.nbytes} bytes", int(wrong[0]))

    def decode(self, heap, starts, lengths, out, /):
        self.check(lengths)
        out.copy_(th.stack(heap.slices(starts, lengths)))

    def encode(self, rows, /):
        return th.nn.functional.pad(rows, (0, -self.nbytes % 16)).view(-1), [self.nbytes] * len(rows)

    @classmethod
    def subject(cls):
        return DeviceCodecSubject("none", DeviceCodecPlugin(1, cls, "A device codec"))


class WithoutEncode(Honest):
    breaks = frozenset({"protocol", "encode", "input"})
    encode = None


class Unaligned(Honest):
    breaks = frozenset({"encode"})

    def encode(self, rows, /):
        return rows.reshape(-1).clone(), [self.nbytes] * len(rows)


class ReturnsPaddedSizes(Honest):
    breaks = frozenset({"encode"})

    def encode(self, rows, /):
        payloads, _ = super().encode(rows)
        return payloads, [len(payloads) // len(rows)] * len(rows)


class DecodesInHeapOrder(Honest):
    breaks = frozenset({"decode", "batches"})

    def decode(self, heap, starts, lengths, out, /):
        order = np.argsort(starts, kind="stable")
        super().decode(heap, starts[order], lengths[order], out)


class ScalesFloats(Honest):
    breaks = frozenset({"floats"})

    def decode(self, heap, starts, lengths, out, /):
        super().decode(heap, starts, lengths, out)
        if out.dtype == th.float32:
            out /= 255


class WritesOneRowMore(Honest):
    breaks = frozenset({"output", "damage", "too-long"})

    def decode(self, heap, starts, lengths, out, /):
        room = len(out.untyped_storage()) // out.element_size() - out.storage_offset()
        if room > out.numel():
            out.as_strided((room,), (1,)).zero_()
        super().decode(heap, starts, lengths, out)


class ChangesPayloads(Honest):
    breaks = frozenset({"input", "batches"})

    def decode(self, heap, starts, lengths, out, /):
        super().decode(heap, starts, lengths, out)
        for payload in heap.slices(starts, lengths):
            payload.zero_()


class ChangesRows(Honest):
    breaks = frozenset({"input"})

    def encode(self, rows, /):
        payloads, sizes = super().encode(rows)
        rows.zero_()
        return payloads.clone(), sizes


class DecodesTheFirstHundred(Honest):
    breaks = frozenset({"batches"})

    def decode(self, heap, starts, lengths, out, /):
        super().decode(heap, starts[:100], lengths[:100], out[:100])


class ReadsTheFirstBlock(Honest):
    breaks = frozenset({"batches"})

    def decode(self, heap, starts, lengths, out, /):
        first = starts.min()
        super().decode(heap, np.where(starts - first < 1 << 16, starts, first), lengths, out)


class RemembersCells(Honest):
    breaks = frozenset({"stateless"})

    def __init__(self, codec, device):
        super().__init__(codec, device)
        self.known = {}

    def decode(self, heap, starts, lengths, out, /):
        key = starts.tobytes(), lengths.tobytes(), out.dtype
        if key not in self.known:
            super().decode(heap, starts, lengths, out)
            self.known[key] = out.clone()
        out.copy_(self.known[key])


class CutsLongPayloads(Honest):
    breaks = frozenset({"too-long"})

    def decode(self, heap, starts, lengths, out, /):
        super().decode(heap, starts, np.minimum(lengths, self.nbytes), out)


class NamesTheWrongPayload(Honest):
    breaks = frozenset({"too-long"})

    def check(self, lengths):
        if (lengths != self.nbytes).any():
            raise PayloadError("none", int(lengths[0]), "some payload is damaged", 0)


class StumblesOverShortPayloads(Honest):
    breaks = frozenset({"damage"})

    def check(self, lengths):
        if (lengths < self.nbytes).any():
            raise IndexError("index out of range")
        super().check(lengths)


class NamesNoProtocol(Honest):
    breaks = frozenset({"plugin"})

    @classmethod
    def subject(cls):
        return DeviceCodecSubject("none", DeviceCodecPlugin("1", cls, "A device codec"))


class HasALongSummary(Honest):
    breaks = frozenset({"plugin"})

    @classmethod
    def subject(cls):
        return DeviceCodecSubject("none", DeviceCodecPlugin(1, cls, "One line\nand another"))


LIARS = Honest.__subclasses__()


def breaks(rule, subject):
    try:
        rule.verify(subject)
    except BrokenRule as error:
        return str(error).startswith(f"[{rule.id}] {rule.sentence}\n    none on cpu: ")
    return False


@pytest.mark.parametrize("codec", [Honest, *LIARS], ids=lambda codec: codec.__name__)
def test_each_liar_breaks_exactly_the_rules_that_it_names(codec):
    assert {rule.id for rule in DEVICE_CODEC_RULES if breaks(rule, codec.subject())} == codec.breaks


def test_every_rule_is_broken_by_a_liar():
    assert set().union(*(liar.breaks for liar in LIARS)) == {rule.id for rule in DEVICE_CODEC_RULES}


def test_rules_do_not_apply_where_the_codec_does_not_work():
    def refuse(codec, device):
        raise DeviceError(str(device), "nothing works there", "Use another one.")

    subject = DeviceCodecSubject("none", DeviceCodecPlugin(1, refuse, "Refuses every device"))
    DEVICE_CODEC_RULES["plugin"].verify(subject)
    for rule in DEVICE_CODEC_RULES:
        if rule.id != "plugin":
            with pytest.raises(NotApplicable, match="nothing works there"):
                rule.verify(subject)


def test_a_subclass_cannot_replace_the_test_of_the_kit():
    with pytest.raises(TypeError, match="overrides test_rule"):

        class Lax(DeviceCodecConformance):
            codec = "none"

            def test_rule(self):
                pass


def test_the_table_of_rules_in_the_documentation_is_complete():
    text = (Path(__file__).resolve().parents[3] / "docs" / "gpu.md").read_text(encoding="utf-8")
    table = text.split("<!-- device-codec-rules:begin -->")[1].split("<!-- device-codec-rules:end -->")[0]
    assert table.strip().splitlines()[2:] == [f"| `{rule.id}` | {rule.sentence} |" for rule in DEVICE_CODEC_RULES]

"""What a third party sees: four lines of test, a test per rule, and failures that state the rule."""

import textwrap

import pytest

from sb3_extra_buffers.testing import CODEC_RULES

pytest_plugins = ["pytester"]

FOUR_LINES = """
    from sb3_extra_buffers.testing import CodecConformance

    class TestMine(CodecConformance):
        codec = "{codec}"
"""

WRONG = """
    from sb3_extra_buffers.codecs import CodecPlugin, hookimpl
    from sb3_extra_buffers.codecs.none import NoneCodec

    class Lossy(NoneCodec):
        def decode_into(self, payload, out, /):
            super().decode_into(payload, out)
            memoryview(out).cast("B")[0] = 7

    @hookimpl
    def sb3_extra_buffers_codec():
        return CodecPlugin(protocol=1, factory=Lossy, summary="Loses a byte")
"""


@pytest.fixture
def run(pytester, site):
    def run(source, *options):
        pytester.makepyfile(textwrap.dedent(source))
        options = ("-p", "no:cacheprovider", "--import-mode=importlib", "-p", "no:xdist", *options)
        return pytester.runpytest_inprocess(*options)

    return run


def test_a_good_codec_passes_one_test_per_rule(run):
    result = run(FOUR_LINES.format(codec="none"))
    outcomes = result.parseoutcomes()
    assert "failed" not in outcomes
    assert outcomes["passed"] + outcomes["skipped"] >= 20


def test_a_failing_test_prints_the_rule_as_a_sentence(install, run):
    install("lossy-dist", "lossy", "fake_lossy", WRONG)
    result = run(FOUR_LINES.format(codec="lossy"))
    assert result.parseoutcomes()["failed"] >= 5
    result.stdout.fnmatch_lines(["*[[]round-trip] Decoding restores every bit of a cell, whatever its dtype*"])
    result.stdout.fnmatch_lines(["*lossy: 1 x bool of constant: 1 bytes differ*"])


def test_a_subclass_may_add_tests_but_not_replace_the_kits(run):
    override = FOUR_LINES.format(codec="none") + "        def test_rule(self):\n            pass\n"
    run(override).stdout.fnmatch_lines(["*TypeError: TestMine overrides test_rule; a subclass may add tests*"])


def test_a_heap_is_held_to_its_rules_in_the_same_way(run):
    result = run(
        """
        from sb3_extra_buffers.testing import HeapConformance

        class TestMine(HeapConformance):
            heap = "memory"
        """
    )
    assert "failed" not in result.parseoutcomes()
    assert result.parseoutcomes()["passed"] >= 12


WRONG_COST = """
    from sb3_extra_buffers.codecs import Automatic, CodecPlugin, hookimpl
    from sb3_extra_buffers.codecs.none import NoneCodec

    @hookimpl
    def sb3_extra_buffers_codec():
        return CodecPlugin(1, NoneCodec, "Copies", automatic=Automatic(decode_cost=1000.0))
"""


def test_a_declared_cost_that_is_far_off_is_a_warning_and_no_failure_also_where_warnings_are_errors(install, run):
    install("slow-dist", "slow", "fake_slow", WRONG_COST)
    result = run(FOUR_LINES.format(codec="slow"), "-W", "error", "-k", "decode_cost")
    assert result.parseoutcomes() == {"passed": 1, "warnings": 1, "deselected": len(CODEC_RULES)}
    result.stdout.fnmatch_lines(["*DecodeCostWarning: slow declares decode_cost=1000, measured here: *"])

"""What is fuzzed accepts what is sound, survives what is nearly right, and its limits are real."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sb3_extra_buffers.errors import PayloadError
from sb3_extra_buffers.testing.processes import run_python
from scripts import fuzz, soak
from scripts.fuzzing.all_targets import all_targets
from scripts.fuzzing.mutation import nearly
from scripts.fuzzing.running import run_with_hypothesis
from scripts.fuzzing.target import FindingError, Target, only_errors_of_ours

TARGETS = all_targets()


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_bad_comes_of_bytes_that_are_nearly_right(name):
    target = TARGETS[name]
    for seed in target.seeds:
        target.attack(seed)

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(nearly(target.seeds))
    def attack(data):
        target.attack(data)

    attack()


def test_every_codec_kernel_and_file_is_a_target():
    from sb3_extra_buffers import codecs

    assert {f"codec {name}" for name in codecs.names()} <= TARGETS.keys()
    assert {"file resealed", "ring", "board", "recording metadata"} <= TARGETS.keys()
    cases = ("blocks", "dict", "rollout", "rollout full", "rollout dict", "goals")
    assert {
        f"checkpoint {case} {part}" for case in cases for part in ("manifest", "numbers", "payloads")
    } <= TARGETS.keys()


def test_an_error_of_somebody_else_is_a_finding():
    with only_errors_of_ours():
        raise PayloadError("rle", 1, "nothing")
    for error in (ValueError("of numpy"), MemoryError(), SystemError()):
        with pytest.raises(FindingError, match=type(error).__name__), only_errors_of_ours():
            raise error


def test_a_finding_is_found_and_told():
    def attack(data):
        with only_errors_of_ours():
            if len(data) > 4 and data[2] != 0x33:
                raise IndexError("beyond")

    found = run_with_hypothesis(Target("planted", [b"123456"], attack), 30, at_once=200)
    assert found.executions
    assert "IndexError" in found.findings[0]


@given(st.data())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_what_is_nearly_right_comes_from_a_seed(data):
    assert isinstance(data.draw(nearly([b"a" * 30, b"{1:2}"])), bytes)


def test_a_process_that_is_limited_gets_no_more_memory():
    code = (
        "import numpy as np\n"
        "from scripts.fuzzing.running import MORE_NBYTES, limit_memory\n"
        "limit_memory()\n"
        "np.ones(MORE_NBYTES // 2, np.uint8)\n"
        "try:\n"
        "    np.empty(2 * MORE_NBYTES, np.uint8)\n"
        "except MemoryError:\n"
        "    print('refused')\n"
    )
    assert run_python(code).strip() == "refused"


def test_the_command_prints_a_table_and_says_what_there_is(capsys):
    assert fuzz.main(["--seconds", "1", "--only", "codec rle", "--engine", "hypothesis"]) == 0
    assert "0 with findings" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        fuzz.main(["--only", "nothing of this name"])


@pytest.mark.parametrize("case", soak.CASES)
def test_memory_stays_what_it_is_after_the_first_rounds(case):
    found = soak.soak(case, 24_000, transitions=2_000, n_envs=50)
    assert found.adds == 24_000
    assert found.first
    assert found.is_constant

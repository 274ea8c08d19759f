"""Runs one target for some time, within limits. Runs in a process of its own: it may die of what it finds."""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from scripts.fuzzing.target import Target

#: How much more address space than before may be taken. A header that claims more, and is believed, shows at once.
MORE_NBYTES = 1 << 28
#: One input may take so many seconds, on a machine that others use too.
INPUT_SECONDS = 20


@dataclass(frozen=True)
class Outcome:
    """What became of a target.

    :param executions: how many inputs it was given
    :param findings: what must not have happened
    """

    executions: int
    findings: list[str]


def limit_memory() -> None:
    """From here on, this process gets little more than it has. What it needs anyway must have been used once."""
    status = Path("/proc/self/status").read_text()
    now = 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmSize:"))
    resource.setrlimit(resource.RLIMIT_AS, (now + MORE_NBYTES, now + MORE_NBYTES))


def run_seeds(target: Target) -> None:
    """Every seed must be accepted; and whatever is loaded or compiled late is there afterwards."""
    for seed in target.seeds:
        target.attack(seed)


def run_with_hypothesis(target: Target, seconds: float, at_once: int = 500) -> Outcome:
    """Inputs near the seeds, other ones in each round.

    :param target: what to attack
    :param seconds: for about how long
    :param at_once: inputs in a round
    """
    import hypothesis

    from scripts.fuzzing.mutation import nearly

    findings: list[str] = []
    executions, deadline, number = 0, time.monotonic() + seconds, 0
    while time.monotonic() < deadline and not findings:

        @hypothesis.seed(number)
        @hypothesis.settings(
            max_examples=at_once,
            deadline=None,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(nearly(target.seeds))
        def attack(data: bytes) -> None:
            nonlocal executions
            executions += 1
            target.attack(data)

        try:
            attack()
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            findings.append(f"{type(error).__name__}: {error}")
        number += 1
    return Outcome(executions, findings)


def run_with_atheris(target: Target, seconds: int) -> None:
    """libFuzzer, with the seeds to begin with. It ends the process by itself, and says on stderr how often it ran."""
    import atheris

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(target.seeds):
            Path(corpus, str(number)).write_bytes(seed)
        longest = 2 * max(map(len, target.seeds)) + 64
        arguments = [
            f"-max_total_time={seconds}",
            f"-timeout={INPUT_SECONDS}",
            f"-max_len={longest}",
            "-rss_limit_mb=0",
            f"-artifact_prefix={corpus}/",
            "-print_final_stats=1",
            corpus,
        ]
        atheris.Setup([sys.argv[0], *arguments], target.attack)
        atheris.Fuzz()


def has_atheris() -> bool:
    """Whether libFuzzer is there."""
    return find_spec("atheris") is not None

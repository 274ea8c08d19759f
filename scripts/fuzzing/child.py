"""The process that a target is attacked in: ``python -m scripts.fuzzing.child NAME SECONDS ENGINE``."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from scripts.fuzzing.all_targets import all_targets, target_named
from scripts.fuzzing.running import limit_memory, run_seeds, run_with_atheris, run_with_hypothesis
from scripts.fuzzing.target import Target

#: What libFuzzer watches, to find inputs that get further. Not what numba compiles: it could not any more.
_WATCHED = [f"sb3_extra_buffers.{part}" for part in ("files", "sharing", "recording")]


def _target(name: str, engine: str) -> Target:
    if engine == "atheris":
        import atheris

        with atheris.instrument_imports(include=_WATCHED):
            return target_named(name)
    return target_named(name)


def main(arguments: list[str]) -> None:
    if not arguments:
        print("\n".join(all_targets()))
        return
    name, seconds, engine = arguments
    target = _target(name, engine)
    run_seeds(target)
    if engine == "atheris":
        limit_memory()
        run_with_atheris(target, int(seconds))
        return
    run_with_hypothesis(target, 0.01, at_once=20)  # loads what hypothesis loads late
    limit_memory()
    print(json.dumps(asdict(run_with_hypothesis(target, float(seconds)))))


if __name__ == "__main__":
    main(sys.argv[1:])

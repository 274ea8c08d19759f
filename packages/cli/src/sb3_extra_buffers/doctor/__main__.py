"""Print the report; the exit code is 1 if an installed plugin is broken."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys

from sb3_extra_buffers.doctor import examine, render


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m sb3_extra_buffers.doctor",
        description="List versions, every installed codec and heap, and why those that do not work are broken.",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    as_json = parser.parse_args().json
    report = examine()
    print(json.dumps(dataclasses.asdict(report), indent=2) if as_json else render(report))
    return 0 if report.healthy else 1


if __name__ == "__main__":
    sys.exit(main())

"""Add up the reports of many pytest runs and print the sum in pytest's own words."""

import sys
from pathlib import Path
from xml.etree import ElementTree


def main() -> int:
    suites = [ElementTree.parse(path).getroot()[0] for path in sorted(Path(sys.argv[1]).glob("*.xml"))]

    def total(field: str) -> int:
        return sum(int(suite.get(field, 0)) for suite in suites)

    failed, errors, skipped = total("failures"), total("errors"), total("skipped")
    passed = total("tests") - failed - errors - skipped
    counts = {"failed": failed, "passed": passed, "skipped": skipped, "errors": errors}
    words = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    seconds = sum(float(suite.get("time", 0)) for suite in suites)
    print(f"{len(suites)} pytest runs")
    print(f" {words or 'no tests ran'} in {seconds:.2f}s ".center(80, "="))
    return 0 if passed and not failed and not errors else 1


if __name__ == "__main__":
    sys.exit(main())

"""Frozen payloads: written once by one version of a codec, decoded by every later one.

Freeze the payloads of a codec when it is new or its format changes on purpose, and commit the file. For example:
``python -m sb3_extra_buffers.testing.freeze zstd tests/golden/zstd.json``. A missing file fails the tests; it is never
written by a test.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sb3_extra_buffers.errors import ExtraBuffersError

# What the package imports is elsewhere: Python warns about a module that was imported before it is run.
from sb3_extra_buffers.testing.golden import Golden, read_golden, write_golden

__all__ = ["Golden", "main", "read_golden", "write_golden"]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m sb3_extra_buffers.testing.freeze",
        description="Write the payloads that every later version of a codec must be able to read.",
    )
    parser.add_argument("codec", help="an installed codec, such as zstd or zstd/-5")
    parser.add_argument("file", type=Path, help="the JSON file to write")
    parser.add_argument("--replace", action="store_true", help="replace the file if it exists: a change of format")
    args = parser.parse_args()
    if args.file.exists() and not args.replace:
        parser.error(f"{args.file} exists; payloads that are frozen are replaced only with --replace")
    try:
        count = write_golden(args.codec, args.file)
    except ExtraBuffersError as error:
        parser.error(str(error))
    print(f"{count} payloads of {args.codec} written to {args.file}")


if __name__ == "__main__":
    main()

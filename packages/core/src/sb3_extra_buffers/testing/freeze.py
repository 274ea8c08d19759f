"""Frozen payloads: written once by one version of a codec, decoded by every later one.

Freeze the payloads of a codec when it is new or its format changes on purpose, and commit the file. For example:
``python -m sb3_extra_buffers.testing.freeze zstd tests/golden/zstd.json``. A missing file fails the tests; it is never
written by a test.
"""

from __future__ import annotations

import argparse
import base64
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind
from sb3_extra_buffers.errors import ExtraBuffersError
from sb3_extra_buffers.memory import Bytes
from sb3_extra_buffers.testing.content import CONTENTS, content, special_floats


@dataclass(frozen=True)
class Golden:
    """A cell and the payload that some version made of it."""

    title: str
    spec: CodecSpec
    cell: CellSpec
    raw: bytes
    payload: bytes


def read_golden(path: Path) -> list[Golden]:
    """Read a file of frozen payloads."""
    found = []
    for entry in json.loads(path.read_text()):
        raw, payload = (zlib.decompress(base64.b64decode(entry[name])) for name in ("raw", "payload"))
        spec, cell = CodecSpec.from_json(entry["spec"]), CellSpec.from_json(entry["cell"])
        found.append(Golden(entry["title"], spec, cell, raw, payload))
    return found


def _cells() -> Iterator[tuple[str, CellSpec, Bytes]]:
    for dtype, count in (("|u1", 1), ("|u1", 255), ("|u1", 300), ("<i2", 130), ("<f4", 80)):
        cell = CellSpec(dtype, count)
        for kind in CONTENTS:
            yield f"{cell} of {kind}", cell, content(kind, cell)
    floats = np.repeat(special_floats(np.dtype("<f8")), 3)
    yield "special floats", CellSpec("<f8", len(floats)), floats.view(np.uint8)
    wide = CellSpec("|u1", 70_000)  # run ends of four bytes
    yield f"{wide}, constant", wide, np.full(wide.count, 7, np.uint8)


def write_golden(codec: str, path: Path) -> int:
    """Encode the standard cells with an installed codec and write them; return how many."""
    entries = []
    for title, cell, raw in _cells():
        bound = bind(codec, cell)
        entry = {"title": title, "spec": bound.spec.to_json(), "cell": cell.to_json()}
        for name, data in (("raw", raw), ("payload", np.frombuffer(bound.encode(raw), np.uint8))):
            entry[name] = base64.b64encode(zlib.compress(data.tobytes(), 9)).decode()
        entries.append(entry)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join(json.dumps(entry) for entry in entries) + "\n]\n")
    return len(entries)


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

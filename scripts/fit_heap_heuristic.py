"""Print or write the table of compression ratios that size estimates interpolate. See ``--help``."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from sb3_extra_buffers.codecs import CellSpec, CodecSpec, bind, registry
from sb3_extra_buffers.errors import ExtraBuffersError
from sb3_extra_buffers.gpu_buffers.size_estimation import LEVELS, WITHOUT_LEVELS

_ROOT = Path(__file__).resolve().parents[1]
DEFAULT_TABLE = _ROOT / "scripts" / "codec_sizes.json"
DEFAULT_OUTPUT = _ROOT / "packages/gpu/src/sb3_extra_buffers/gpu_buffers/size_ratios.py"

#: The codecs of the table.
CODECS = (*WITHOUT_LEVELS, *LEVELS)
#: The negative levels that are measured; all others are.
_NEGATIVE = (-65536, -10000, -3000, -1000, -500, -300, -200, -100, -70, -50, -30, -20, -15, -10, -7, -5, -4, -3, -2, -1)
#: The form of a table, for errors.
_FORM = 'a table must look like {"tables": [{"game": …, "order": …, "figures": [{"codec": …, "ratio": …}]}]}'
_DIGITS = 4
_WIDTH = 90

Figures = dict[str, dict[int, float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure if asked to, and print, write or compare. Returns the exit code: 2 for errors."""
    options = _options(arguments)
    try:
        return _run(options)
    except (ExtraBuffersError, OSError, OverflowError, ValueError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    if options.check and options.measure:
        raise ValueError("--check compares with a table that exists; leave --measure out")
    measured = _table_text(measure(options.game, options.frames)) if options.measure else None
    source = options.table.read_text(encoding="utf-8") if measured is None else measured
    try:
        text = rendered(json.loads(source), options.table.name, options.game, options.order)
    except ValueError as error:
        raise ValueError(f"{options.table}: {error}") from error
    output = options.output or DEFAULT_OUTPUT
    if options.check:
        found = output.read_text(encoding="utf-8") if output.exists() else ""
        if found != text:
            print(f"{output.name} is not what {options.table.name} gives. Run this script with --write.")
        return int(found != text)
    if options.output is None and not options.write:
        print(text, end="")
        return 0
    # Only now: an unusable table must replace nothing.
    if measured is not None:
        options.table.write_text(measured, encoding="utf-8")
    output.write_text(text, encoding="utf-8")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="fit_heap_heuristic.py",
        description="Print the ratio of payload to raw size at the levels of each codec as a Python module.",
        epilog="example: python scripts/fit_heap_heuristic.py --table codecs.json --game Pong --order chw --write",
    )
    what = f"figures as written by python -m benchmarks.codecs --json (default: {DEFAULT_TABLE.name})"
    parser.add_argument("--table", type=Path, default=DEFAULT_TABLE, metavar="FILE", help=what)
    write = f"write the module instead of printing it (to {DEFAULT_OUTPUT.name} of the package)"
    parser.add_argument("--write", action="store_true", help=write)
    parser.add_argument("--output", type=Path, metavar="FILE", help="write to this file, or check it")
    parser.add_argument("--game", default="MsPacman", help="game to use (default: MsPacman)")
    order = "memory order to use (default: hwc, the order of environments)"
    parser.add_argument("--order", choices=("hwc", "chw"), default="hwc", help=order)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if the output would change")
    every = "first play the game and measure all levels; --write also writes the table. Needs all codecs"
    parser.add_argument("--measure", action="store_true", help=every)
    parser.add_argument("--frames", type=int, default=64, help="number of observations to measure (default: 64)")
    return parser.parse_args(arguments)


def figures_of(content: Any, game: str, order: str) -> Figures:
    """Payload size divided by raw size, by codec and level. Codecs without levels have level 0."""
    known = _tables(content)
    tables = [one for one in known if (one["game"], one["order"]) == (game, order)]
    if len(tables) != 1:
        found = ", ".join(f"{one['game']} {one['order']}" for one in known) or "none"
        raise ValueError(f"the table must have {game} {order} exactly once; it has: {found}")
    figures: Figures = {}
    for row in tables[0]["figures"]:
        name, ratio = _figure(row)
        if "(" in name:  # a variant with parameters: not estimated
            continue
        spec = CodecSpec.parse(name, CODECS)
        if spec.name not in CODECS:
            continue
        level = _level(spec)
        if spec.name in WITHOUT_LEVELS or level in LEVELS[spec.name]:
            figures.setdefault(spec.name, {})[level] = float(f"{1 / ratio:.{_DIGITS}g}")
    return figures


def _tables(content: Any) -> list[Any]:
    found = content.get("tables") if isinstance(content, dict) else None
    keys = {"game", "order", "figures"}
    if not isinstance(found, list) or not all(isinstance(one, dict) and keys <= one.keys() for one in found):
        raise ValueError(f"{_FORM}, as written by python -m benchmarks.codecs --json")
    if not all(isinstance(one["figures"], list) for one in found):
        raise ValueError(f"{_FORM}; figures that are no list were found")
    return found


def _figure(row: Any) -> tuple[str, float]:
    name, ratio = (row.get("codec"), row.get("ratio")) if isinstance(row, dict) else (None, None)
    value = float(ratio) if isinstance(ratio, (int, float)) and not isinstance(ratio, bool) else 0.0
    if not isinstance(name, str) or not 0 < value < math.inf:
        raise ValueError(f"a figure must have a codec and a finite ratio above 0; found: {json.dumps(row)[:120]}")
    return name, value


def _level(spec: CodecSpec) -> int:
    """The measured level: the default of the codec if the name has none."""
    level = spec.params.get("level")
    if level is None and spec.name in LEVELS:
        levels = registry.load(spec.name).levels
        level = None if levels is None else levels.default
    return level if isinstance(level, int) else 0


def rendered(content: dict[str, Any], table: str, game: str, order: str) -> str:
    """The text of the module with the table."""
    figures = figures_of(content, game, order)
    if not figures:
        raise ValueError(f"{game} {order} has no figure of these codecs at their levels: {', '.join(CODECS)}")
    settings = content.get("settings")
    frames = settings.get("frames") if isinstance(settings, dict) else None
    count = frames if isinstance(frames, int) else "some"
    lines = [
        '"""Measured compression ratios. Generated by scripts/fit_heap_heuristic.py: do not edit.',
        "",
        f"From {table}: {count} observations of {game}, 84 x 84, four stacked, memory order {order.upper()}.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "#: For each codec and level: payload size divided by raw size. Codecs without levels have level 0.",
        "# fmt: off",
        "RATIOS: dict[str, dict[int, float]] = {",
    ]
    for name in CODECS:
        if name in figures:
            # An entry has no space, so that lines are wrapped between entries only.
            entries = wrap(", ".join(f"{level}:{figures[name][level]}" for level in sorted(figures[name])), _WIDTH)
            lines += [f'    "{name}": {{', *(f"        {line.replace(':', ': ')}" for line in entries), "    },"]
    return "\n".join([*lines, "}", "# fmt: on", ""])


def measure(game: str, count: int) -> dict[str, Any]:
    """Encode observations of a randomly played game at the levels of every codec."""
    sys.path.insert(0, str(_ROOT))  # sys.path has the folder of the script only
    from benchmarks._lib.atari import stacked_frames
    from benchmarks._lib.machine import machine_info

    # Every eighth: consecutive ones are nearly equal.
    observations = stacked_frames(game, 8 * count)[::8]
    tables = []
    for order, axes in (("hwc", (0, 1, 2, 3)), ("chw", (0, 3, 1, 2))):
        rows = np.ascontiguousarray(observations.transpose(axes)).reshape(count, -1)
        sizes = [{"codec": str(spec), "ratio": _times_smaller(spec, rows)} for spec in _specs()]
        tables.append({"game": game, "order": order, "figures": sizes})
    info = {key: value for key, value in machine_info().items() if key in ("zlib", "libraries")}
    return {"machine": info, "settings": {"frames": count}, "tables": tables}


def _specs() -> Iterator[CodecSpec]:
    yield from map(CodecSpec, WITHOUT_LEVELS)
    for name, levels in LEVELS.items():
        highest = max(high for _, high in levels.ranges)
        for level in (*_NEGATIVE, *range(highest + 1)):
            if level in levels:
                yield CodecSpec(name, {"level": level})


def _times_smaller(spec: CodecSpec, rows: np.ndarray[Any, np.dtype[np.uint8]]) -> float:
    codec = bind(spec, CellSpec(np.uint8, rows.shape[1]))
    return round(rows.nbytes / sum(len(codec.encode(row)) for row in rows), 3)


def _table_text(table: dict[str, Any]) -> str:
    """JSON with one line per codec, for readable diffs."""
    shells = [{**one, "figures": f"@{index}"} for index, one in enumerate(table["tables"])]
    text = json.dumps({**table, "tables": shells}, indent=2)
    for index, one in enumerate(table["tables"]):
        rows = ",\n".join(f"        {json.dumps(row)}" for row in one["figures"])
        text = text.replace(f'"@{index}"', f"[\n{rows}\n      ]")
    return text + "\n"


if __name__ == "__main__":
    sys.exit(main())
